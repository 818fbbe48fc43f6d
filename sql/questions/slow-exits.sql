-- Which reasons cost most over all hosts, and how long are their exits?
SELECT e.level, e.isa, e.reason, SUM(e.exits) AS exits, SUM(e.time_ns) AS time_ns, SUM(e.cost_ns) AS cost_ns,
  MAX(p.p50_ns) AS p50_ns, MAX(p.p99_ns) AS p99_ns, MAX(e.max_ns) AS max_ns, COUNT(DISTINCT e.host_id) AS hosts
FROM exit_summary e LEFT JOIN exit_percentiles p
  ON p.metric = 'time' AND p.level = e.level AND p.isa = e.isa AND p.reason = e.reason
WHERE NOT e.waiting GROUP BY e.level, e.isa, e.reason ORDER BY cost_ns DESC NULLS LAST, time_ns DESC, e.reason
