select employee_id as broker_id, manager_id, first_name, last_name, middle_initial, branch, office, phone
from {{ ref('brz_hr') }} where job_code = 314
