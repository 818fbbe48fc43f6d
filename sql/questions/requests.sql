-- Which paths do requests take, and how long?
SELECT vm, path, COUNT(*) AS requests, SUM(dur_ns) AS time_ns, AVG(CAST(dur_ns AS DOUBLE)) AS mean_ns, MAX(dur_ns) AS max_ns
FROM requests GROUP BY vm, path ORDER BY time_ns DESC, path LIMIT 20
