"""The alias of a deployed state machine: what starts runs of a version, while there are others.

`model` is the alias as a value, `settling` says which changes bring it to what is wanted, `trials`
what two versions share that get runs at once, and `promoting` ends the trial of a version.
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-state-machine-alias.html
"""
