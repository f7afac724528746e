"""Renderers of step graphs: pure functions that import neither Airflow nor boto3."""
