"""Airflow DAGs and task groups, built from the specifications of pipelines."""
