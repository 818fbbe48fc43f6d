-- What do exits of nested guests bring about?
SELECT isa, reason, exits, factor, time_ns FROM nested_factors WHERE exits > 0 ORDER BY time_ns DESC, reason
