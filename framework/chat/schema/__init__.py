"""JSON schema to GBNF, one module per kind of value; chat.json_schema is the way in."""
