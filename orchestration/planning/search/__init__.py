"""The search: the best plans for a task within limits, and why others were rejected.

A question is a `task`, a `space` of instances and strategies, and an `objective`; `request` is how
users write all three. `find` answers it with `plans`: for every cluster of a `suitability` check,
the `layouts` that a strategy can start (`strategy_choice`) become `candidates`, and the best of
them a plan (`assessment`, with `learning_rates`). `comparison` ranks plans, `rejections` groups
the reasons against the others, and `shortfall` says what is missing where there is no plan.
`amounts` formats times and sums of money in these reasons.
"""
