from orchestration.airflow import dag

lustre = dag("lustre.yaml")
