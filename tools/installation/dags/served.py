from orchestration.airflow import dag

served = dag("served.yaml")
