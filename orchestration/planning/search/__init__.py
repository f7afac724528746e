"""The search: the best plans for a task within limits, and why others were rejected.

A question is a `task`, a `space` of instances and strategies, and an `objective`; `request` is how
users write all three. `find` answers it: for every cluster of a `suitability` check, the `layouts`
that a strategy can start (`strategy_choice`) become `candidates`, and the best of them a plan
(`assessment`). `amounts` formats times and sums of money.

The room `answers` holds what is found: `plans` with their `learning_rates`, their `comparison`,
`rejections` grouped by reason, and the `shortfall` if there is no plan.
"""
