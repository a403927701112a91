"""The shapes of 13 as JSON Schema, under the names that routes refer to. Pure data.

Fields may be added to every answer (13, top), so no object is closed but those that callers send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from framework.api.event_kinds import EVENT_KINDS
from framework.values.action import STOP_MODES
from framework.values.instance import State

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
OBJECT: Schema = {"type": "object"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def ref(name: str) -> Schema:
    """A schema of the description, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def many(of: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": of}


def maybe(schema: Schema) -> Schema:
    """A value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*words: str) -> Schema:
    """One of a few words."""
    return {"type": "string", "enum": list(words)}


def an_object(**fields: Schema) -> Schema:
    """An object with at least these fields."""
    return {"type": "object", "required": list(fields), "properties": fields}


def a_body(**fields: Schema) -> Schema:
    """An object that a caller sends: all fields are optional, and others are refused."""
    return {"type": "object", "properties": fields, "additionalProperties": False}


MANIFEST = an_object(path=TEXT, sha256=DIGEST)
VERSION = an_object(id=COUNT, at=MOMENT, by=TEXT, file=TEXT, sha256=DIGEST, size_bytes=COUNT, summary=TEXT)
EDIT = an_object(path=many(TEXT), value={})
EACH_STATE = one_of(*(state.value for state in State))

SCHEMAS: Mapping[str, Schema] = {
    "Error": an_object(
        error={
            **an_object(message=TEXT, type=TEXT, param=maybe(TEXT), code=TEXT, request_id=TEXT),
        }
    ),
    "Reason": an_object(
        code={"type": "string", "pattern": "^[a-z0-9_]+$"},
        message=TEXT,
        remedy=TEXT,
        severity=one_of("info", "warning", "error"),
        evidence=OBJECT,
    ),
    "Problem": an_object(
        code=TEXT,
        severity=one_of("error", "warning"),
        file=TEXT,
        line=COUNT,
        column=COUNT,
        path=TEXT,
        message=TEXT,
        found=TEXT,
        allowed=TEXT,
        suggestion=TEXT,
    ),
    "Device": an_object(
        name=TEXT, kind=one_of("gpu", "cpu", "rpc"), total_bytes=COUNT, free_bytes=COUNT, pool=maybe(TEXT)
    ),
    "InstancePlan": an_object(
        model=TEXT,
        replica=COUNT,
        engine=maybe({}),
        argv=many(TEXT),
        environment=OBJECT,
        asked=OBJECT,
        granted=maybe(OBJECT),
        fit=maybe(OBJECT),
        speculation=maybe(OBJECT),
        reasons=many(ref("Reason")),
    ),
    "Plan": an_object(
        manifest=MANIFEST,
        inventory=many(ref("Device")),
        instances=many(ref("InstancePlan")),
        reasons=many(ref("Reason")),
    ),
    "Instance": an_object(
        replica=COUNT,
        generation=COUNT,
        state=EACH_STATE,
        pid=maybe(COUNT),
        port=maybe(COUNT),
        since_at=MOMENT,
        restarts=COUNT,
        inflight=COUNT,
        slots=many(OBJECT),
        plan=maybe(OBJECT),
        running=maybe(OBJECT),
        last_error=maybe(ref("Reason")),
    ),
    "Model": an_object(
        name=TEXT,
        aliases=many(TEXT),
        source=TEXT,
        pool=TEXT,
        load=one_of("on-demand", "at-start", "manual"),
        state=EACH_STATE,
        replacing=FLAG,
        queue=an_object(
            waiting=COUNT,
            limit=COUNT,
            oldest_wait_s=maybe(NUMBER),
            eta_s=maybe(NUMBER),
            position=maybe(COUNT),
        ),
        instances=many(ref("Instance")),
    ),
    "Pool": an_object(
        name=TEXT,
        limits=OBJECT,
        devices=many(OBJECT),
        residents=many(OBJECT),
        waiting=many(OBJECT),
        evictions=COUNT,
    ),
    "Status": an_object(
        version=TEXT,
        since_at=MOMENT,
        manifest=MANIFEST,
        devices_sampled_at=maybe(MOMENT),
        pools=many(ref("Pool")),
        models=many(ref("Model")),
    ),
    "Event": an_object(
        id=COUNT,
        at=MOMENT,
        kind=one_of(*EVENT_KINDS),
        model=maybe(TEXT),
        replica=maybe(COUNT),
        message=TEXT,
        reason=maybe(ref("Reason")),
        data=OBJECT,
    ),
    "Events": an_object(events=many(ref("Event")), storage_fault=maybe(ref("Reason"))),
    "Request": an_object(
        id=TEXT, at=MOMENT, route=TEXT, model=maybe(TEXT), replica=maybe(COUNT), key=maybe(TEXT)
    ),
    "Requests": an_object(
        request_log=one_of("off", "metadata", "full"),
        running=many(ref("Request")),
        requests=many(ref("Request")),
    ),
    "Cancelled": an_object(id=TEXT, cancelled=FLAG, event_id=COUNT),
    "ModelHistory": an_object(model=TEXT, step_s=COUNT, steps=many(an_object(at=MOMENT, requests=OBJECT))),
    "DeviceHistories": an_object(
        step_s=COUNT,
        devices=many(an_object(name=TEXT, total_bytes=COUNT, steps=many(an_object(at=MOMENT)))),
    ),
    "Accepted": an_object(accepted=FLAG, event_id=COUNT),
    "Files": an_object(folders=many(TEXT), complete=FLAG, files=many(OBJECT)),
    "Inspection": an_object(
        facts=OBJECT,
        files=many(OBJECT),
        template=maybe(OBJECT),
        memory=maybe(OBJECT),
        reasons=many(ref("Reason")),
    ),
    "Check": an_object(ok=FLAG, manifest=MANIFEST, problems=many(ref("Problem"))),
    "ManifestText": an_object(
        ok=FLAG,
        manifest=MANIFEST,
        problems=many(ref("Problem")),
        text=TEXT,
        files=many(an_object(file=TEXT, path=TEXT, sha256=DIGEST, text=TEXT)),
    ),
    "Diff": an_object(
        actions=many(OBJECT), problems=many(ref("Problem")), notices=many(TEXT), memory=maybe(OBJECT)
    ),
    "Edited": an_object(file=TEXT, base_sha256=DIGEST, text=TEXT),
    "Applied": an_object(
        accepted=FLAG, event_id=COUNT, file=TEXT, sha256=DIGEST, version=maybe(COUNT), summary=TEXT
    ),
    "History": an_object(versions=many(VERSION)),
    "Version": an_object(**VERSION["properties"], text=TEXT, diff=TEXT),
    "Remedies": an_object(
        model=TEXT,
        remedies=many(
            an_object(code=TEXT, sentence=TEXT, file=TEXT, edits=many(OBJECT), after=maybe(OBJECT))
        ),
    ),
    "Engines": an_object(
        engines=many(an_object(name=TEXT, kind=TEXT, conclusive=FLAG, reasons=many(ref("Reason"))))
    ),
    "Reasons": an_object(reasons=many(an_object(code=TEXT, section=TEXT, means=TEXT, remedy=TEXT))),
    "Devices": an_object(sampled_at=maybe(MOMENT), devices=many(ref("Device")), reasons=many(ref("Reason"))),
    "Doctor": an_object(checks=many(an_object(name=TEXT, ok=FLAG, reason=maybe(ref("Reason"))))),
    "NoFields": a_body(),
    "StopMode": a_body(mode=one_of(*STOP_MODES)),
    "Text": a_body(text=maybe(TEXT), file=maybe(TEXT)),
    "Edits": a_body(file=maybe(TEXT), edits=many(EDIT)),
    "Apply": a_body(text=TEXT, base_sha256=TEXT, file=maybe(TEXT)),
    "Revert": a_body(version=maybe({"type": "integer", "minimum": 1}), base_sha256=maybe(TEXT)),
}
