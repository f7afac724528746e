from orchestration.airflow import dag

held = dag("held.yaml", deferrable=False)
