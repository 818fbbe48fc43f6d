-- Views over the tables, in SQL that DataFusion, DuckDB, Spark and Trino have in common. A statement each.

-- Exits with what is known of their session.
CREATE VIEW session_exits AS
SELECT s.host_id, s.kernel_release, s.cpu_model, x.*
FROM exits x JOIN sessions s ON s.session_id = x.session_id AND s.ingest_id = x.ingest_id;

-- What exits of each reason cost, by host: as `hyperscope exits`, from the rollups.
CREATE VIEW exit_summary AS
SELECT s.host_id, r.machine, r.vm, r.level, r.isa, r.reason, r.code, r.waiting,
  CAST(SUM(r.exits) AS BIGINT) AS exits, CAST(SUM(r.paired) AS BIGINT) AS paired,
  CAST(SUM(r.time_ns) AS BIGINT) AS time_ns, CAST(SUM(r.cost_ns) AS BIGINT) AS cost_ns,
  CAST(SUM(r.kernel_ns) AS BIGINT) AS kernel_ns, CAST(SUM(r.user_ns) AS BIGINT) AS user_ns,
  CAST(SUM(r.off_cpu_ns) AS BIGINT) AS off_cpu_ns, CAST(SUM(r.halt_poll_ns) AS BIGINT) AS halt_poll_ns,
  MIN(r.min_ns) AS min_ns, MAX(r.max_ns) AS max_ns,
  CAST(SUM(r.time_ns) AS DOUBLE) / CAST(SUM(r.paired) AS DOUBLE) AS mean_ns
FROM exit_rollup r JOIN sessions s ON s.session_id = r.session_id AND s.ingest_id = r.ingest_id
GROUP BY s.host_id, r.machine, r.vm, r.level, r.isa, r.reason, r.code, r.waiting;

-- Percentiles of each reason's times over all hosts, by the histograms.
CREATE VIEW exit_percentiles AS
WITH h AS (SELECT metric, level, isa, reason, bucket, CAST(SUM(n) AS BIGINT) AS n FROM exit_hist
           GROUP BY metric, level, isa, reason, bucket),
  c AS (SELECT metric, level, isa, reason, bucket, n,
          SUM(n) OVER (PARTITION BY metric, level, isa, reason ORDER BY bucket
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
          SUM(n) OVER (PARTITION BY metric, level, isa, reason) AS total FROM h)
SELECT c.metric, c.level, c.isa, c.reason, CAST(MAX(c.total) AS BIGINT) AS exits,
  MIN(CASE WHEN c.upto * 1000 >= 500 * c.total THEN b.hi_ns END) AS p50_ns,
  MIN(CASE WHEN c.upto * 1000 >= 900 * c.total THEN b.hi_ns END) AS p90_ns,
  MIN(CASE WHEN c.upto * 1000 >= 990 * c.total THEN b.hi_ns END) AS p99_ns,
  MIN(CASE WHEN c.upto * 1000 >= 999 * c.total THEN b.hi_ns END) AS p999_ns
FROM c JOIN buckets b ON b.bucket = c.bucket GROUP BY c.metric, c.level, c.isa, c.reason;

-- What vCPUs did, by host and VM: as `hyperscope cpu`.
CREATE VIEW state_summary AS
SELECT s.host_id, r.machine, r.vm, r.state, CAST(SUM(r.time_ns) AS BIGINT) AS time_ns
FROM state_rollup r JOIN sessions s ON s.session_id = r.session_id AND s.ingest_id = r.ingest_id
GROUP BY s.host_id, r.machine, r.vm, r.state;

-- Exits a second of each machine, of the time that was recorded without a loss.
CREATE VIEW exit_rates AS
SELECT host_id, machine, CAST(SUM(exits) AS BIGINT) AS exits, CAST(SUM(covered_ns) AS BIGINT) AS covered_ns,
  CAST(SUM(exits) AS DOUBLE) * 1000000000 / CAST(SUM(covered_ns) AS DOUBLE) AS exits_per_s
FROM (SELECT s.host_id, r.machine, r.session_id, r.slice_ns, SUM(r.exits) AS exits, MAX(r.covered_ns) AS covered_ns
      FROM exit_rollup r JOIN sessions s ON s.session_id = r.session_id AND s.ingest_id = r.ingest_id
      GROUP BY s.host_id, r.machine, r.session_id, r.slice_ns) slices
GROUP BY host_id, machine;

-- How many exits of level 1 an exit of level 2 brings about, itself counted: as `hyperscope nested`.
CREATE VIEW nested_factors AS
SELECT isa, reason,
  CAST(SUM(CASE WHEN ancillary_reason IS NULL THEN exits ELSE 0 END) AS BIGINT) AS exits,
  CAST(SUM(exits) AS DOUBLE) / CAST(SUM(CASE WHEN ancillary_reason IS NULL THEN exits END) AS DOUBLE) AS factor,
  CAST(SUM(time_ns) AS BIGINT) AS time_ns
FROM nested_rollup GROUP BY isa, reason;
