"""Whether, how and with which flags a model drafts tokens ahead, and why it does not (05). Pure."""
