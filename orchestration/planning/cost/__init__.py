"""Costs of a configuration: the seconds of a training step, and the memory of each device.

`prediction` is the entrance. Time (`step_time`) is computing (`compute`, at the `rates` that
`devices` reach) and communication (`collectives`): inside one replica of the model
(`model_parallel`) and between replicas (`data_parallel`). Memory (`memory`) is model states
(`model_states`), `activations` and the `buffers` of engines. `coefficients` holds what was fitted
to measurements, `regimes` the kinds of configurations that are fitted apart, and `estimates` the
parts of a prediction that a search needs by the thousand.

Formulas abbreviate: `c` is the configuration, `s` the sizes of its model, `d` the device, `r` the
rates that it reaches, and `k` the coefficients.
"""
