"""How much memory a launch will take, on which device, and how we know (03). Pure: no files, no clock.

`plan_memory` is the plan, `largest_context` the longest context that fits, `remedies` what to change when it
does not. `shape_of` and `table_of` turn what was read of a model's files into what they take.
"""
