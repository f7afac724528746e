"""The digits pipeline as an Airflow DAG."""

from orchestration.airflow import dag

digits = dag("digits.yaml")
