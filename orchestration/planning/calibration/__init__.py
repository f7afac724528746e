"""Calibration: predictions of published measurements, and how good they are.

`rows` turns rows of a table into configurations: `cells` reads numbers, `spellings` the words that
tables use, `recipes` what training frameworks do by default, and `row_models` the model, from
`published_models` where only its name is known. `evaluate` predicts every row, and `scores`
compares predictions with measurements. ``tools/planning/fit.py`` fits the coefficients with both.
"""
