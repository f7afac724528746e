"""People who are asked in Airflow's UI."""
