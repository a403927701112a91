"""The certificate of the listener: what is refused, and how one is replaced."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from framework.manifest.load import Loaded
from framework.tls import Certificate, TlsFault, make_context
from framework.values.manifest import Manifest, ServerSettings, Tls

DATA = Path(__file__).parent / "data" / "tls"
PLAIN = Manifest(Path("/m/serve.toml"), "0" * 64, ())


def pair(folder: Path, certificate: str = "one", key: str = "one", digest: str = "1") -> Tls:
    """A certificate and a key, copied to where a key is private."""
    shutil.copy(DATA / f"{certificate}.crt", folder / "chain.pem")
    shutil.copy(DATA / f"{key}.key", folder / "key.pem")
    (folder / "key.pem").chmod(0o600)
    return Tls(folder / "chain.pem", folder / "key.pem", digest)


def loaded(tls: Tls | None) -> Loaded:
    manifest = replace(PLAIN, server=ServerSettings(tls=tls))
    return Loaded(manifest, (), manifest.sha256, ())


@pytest.mark.parametrize(
    ("certificate", "key", "told"),
    [("one", "two", "does not belong to"), ("one", "locked", "locked with a password")],
)
def test_a_pair_that_cannot_be_used_says_why(tmp_path: Path, certificate: str, key: str, told: str) -> None:
    with pytest.raises(TlsFault, match=told):
        make_context(pair(tmp_path, certificate, key))


def test_what_is_no_certificate_says_which_file_to_name(tmp_path: Path) -> None:
    tls = pair(tmp_path)
    tls.certificate.write_text("hello")
    with pytest.raises(TlsFault, match=r"fullchain\.pem"):
        make_context(tls)


def test_a_manifest_with_a_bad_pair_is_refused_and_the_old_one_is_shown(tmp_path: Path) -> None:
    tls = pair(tmp_path)
    certificate = Certificate(tls)
    bad = pair(tmp_path, key="two", digest="2")
    refused = certificate.check(loaded(bad))
    assert refused.manifest is None
    assert refused.problems[0].code == "tls_unusable"
    assert certificate.tls == tls


def test_what_is_wrong_with_a_pair_points_at_the_line_that_names_it(tmp_path: Path) -> None:
    tls = pair(tmp_path, key="two")
    text = '[server]\nlisten = "127.0.0.1:1"\ntls = { certificate = "file:c", key = "file:k" }\n'
    read = replace(loaded(tls), sources={"serve.toml": text.encode()})
    problem = Certificate(None).check(read).problems[0]
    assert problem.location == "serve.toml:3:1"
    assert "made together" in problem.message


def test_a_new_pair_is_shown_once_its_manifest_is_in_force(tmp_path: Path) -> None:
    certificate = Certificate(pair(tmp_path))
    new = pair(tmp_path, "two", "two", "2")
    checked = certificate.check(loaded(new))
    assert certificate.tls is not None
    assert certificate.tls.sha256 == "1"
    assert checked.manifest is not None
    certificate.adopt(checked.manifest)
    assert certificate.tls == new


def test_a_key_that_everybody_may_read_is_a_warning(tmp_path: Path) -> None:
    tls = pair(tmp_path)
    tls.key.chmod(0o644)
    checked = Certificate(tls).check(loaded(tls))
    assert checked.manifest is not None
    assert [(problem.code, problem.severity) for problem in checked.problems] == [
        ("tls_key_readable", "warning")
    ]


def test_without_a_certificate_it_is_plain_http(tmp_path: Path) -> None:
    certificate = Certificate(None)
    assert (certificate.scheme, certificate.context) == ("http", None)
    certificate.adopt(certificate.check(loaded(pair(tmp_path))).manifest or PLAIN)
    assert certificate.context is None
