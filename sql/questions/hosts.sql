-- Which hosts are there, how long were they recorded, how many exits a second do they have?
SELECT s.host_id, MIN(s.kernel_release) AS kernel_release, COUNT(*) AS sessions, SUM(s.span_ns) AS span_ns,
  SUM(s.events_lost) AS events_lost, MAX(r.exits_per_s) AS exits_per_s
FROM sessions s LEFT JOIN exit_rates r ON r.host_id = s.host_id AND r.machine = 'host'
GROUP BY s.host_id ORDER BY s.host_id NULLS LAST
