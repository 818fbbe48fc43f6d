-- What do vCPUs do with their time, over all hosts?
SELECT state, SUM(time_ns) AS time_ns, CAST(SUM(time_ns) AS DOUBLE) / (SELECT CAST(SUM(time_ns) AS DOUBLE) FROM state_rollup) AS share
FROM state_summary GROUP BY state ORDER BY time_ns DESC, state
