"""Models and configurations: the input of every prediction.

`shapes` describes a transformer by its layers and counts its parameters and operations.
`hugging_face` builds one from a ``config.json``, which `config_json` reads by the conventions in
`families`, and refuses kinds `without_formula`; `typical_shapes` guesses one from a few numbers.
`layer_sizes` condenses a shape to what predictions use. `configuration` adds the machines and how
the work is laid out on them, `recipes` what training engines do by default.
"""
