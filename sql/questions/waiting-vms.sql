-- Which VMs wait for CPUs: for how much of their time could they have run, and didn't?
SELECT host_id, vm, SUM(CASE WHEN state IN ('waiting', 'preempted') THEN time_ns ELSE 0 END) AS waited_ns, SUM(time_ns) AS time_ns,
  CAST(SUM(CASE WHEN state IN ('waiting', 'preempted') THEN time_ns ELSE 0 END) AS DOUBLE) / CAST(SUM(time_ns) AS DOUBLE) AS share
FROM state_summary GROUP BY host_id, vm ORDER BY share DESC, host_id NULLS LAST, vm
