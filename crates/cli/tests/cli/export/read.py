"""Reads what `hyperscope export` wrote, by the rules of each format, and prints a summary as JSON.

    read.py perfetto|chrome|firefox FILE

By group and track: the number of slices, time by category and, of exits, by reason and category; and
how many exits there were. Fails where a format's rules are broken. Shares no code with the writer.
"""

import bisect
import json
import sys
from collections import Counter, defaultdict


class Summary:
    def __init__(self):
        self.tracks = defaultdict(lambda: {
            "slices": 0, "ns": Counter(), "exits": {}, "seen": set(), "end": 0})
        self.instants = Counter()
        self.switches = Counter()
        self.wakings = 0
        self.flows = Counter()
        self.rates = Counter()
        self.recordings = []

    def slice(self, track, begin, end, name, category, args):
        assert begin < end, (track, begin, end)
        one = self.tracks[track]
        assert begin >= one["end"], f"{track}: {name} begins at {begin}, before {one['end']}"
        one["end"] = end
        one["slices"] += 1
        one["ns"][category] += end - begin
        if args.get("paired"):
            assert name == f"{category}: {args['reason']}", (name, args)
            exits = one["exits"].setdefault(args["reason"], {"count": 0, "ns": Counter()})
            exits["ns"][category] += end - begin
            if "exit_ns" in args and args["exit_ns"] not in one["seen"]:
                one["seen"].add(args["exit_ns"])
                exits["count"] += 1

    def print(self):
        for one in self.tracks.values():
            del one["seen"], one["end"]
        tracks = {"/".join(track): one for track, one in self.tracks.items()}
        json.dump({"tracks": tracks, "instants": self.instants, "switches": self.switches,
                   "wakings": self.wakings, "flows": self.flows, "rates": self.rates,
                   "recordings": self.recordings}, sys.stdout)


def flow(summary, ends):
    """One flow: its ends as (time, kind, name), in the order of the file; kinds are those of Chrome."""
    kinds = "".join(kind for _, kind, _ in ends)
    assert kinds == "s" + "t" * (len(ends) - 2) + "f", kinds
    assert len({name for _, _, name in ends}) == 1, ends
    times = [stamp for stamp, _, _ in ends]
    assert times == sorted(times), ends
    summary.flows[ends[0][2]] += 1


def perfetto(path, summary):
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace = protos.Trace()
    trace.ParseFromString(open(path, "rb").read())

    def known(message):
        assert len(UnknownFieldSet(message)) == 0, message
        for field, value in message.ListFields():
            if field.message_type is not None:
                for part in value if hasattr(value, "append") else [value]:
                    known(part)

    names, parents, counters = {}, {}, set()
    interned = defaultdict(dict)
    events = []
    cleared = False
    for packet in trace.packet:
        known(packet)
        if packet.sequence_flags & 2:
            assert cleared, "a packet that needs state before there is any"
        cleared |= bool(packet.sequence_flags & 1)
        data = packet.interned_data
        for kind in ["event_names", "event_categories", "debug_annotation_names"]:
            for one in getattr(data, kind):
                assert one.iid not in interned[kind] and one.iid > 0
                interned[kind][one.iid] = one.name
        for one in data.debug_annotation_string_values:
            interned["strings"][one.iid] = one.str.decode()
        kind = packet.WhichOneof("data")
        if kind == "track_descriptor":
            track = packet.track_descriptor
            assert track.uuid not in names, "a track told twice"
            names[track.uuid] = track.name
            if track.parent_uuid:
                assert track.parent_uuid in names, "a track before its group"
                parents[track.uuid] = track.parent_uuid
            if track.HasField("counter"):
                counters.add(track.uuid)
        elif kind == "track_event":
            event = packet.track_event
            assert event.track_uuid in names, "an event before its track"
            args = {}
            for arg in event.debug_annotations:
                name = interned["debug_annotation_names"][arg.name_iid]
                which = arg.WhichOneof("value")
                value = getattr(arg, which)
                args[name] = interned["strings"][value] if which == "string_value_iid" else value
            name = interned["event_names"].get(event.name_iid)
            category = [interned["event_categories"][one] for one in event.category_iids]
            events.append((packet.timestamp, len(events), event, name, category, args))
        elif kind == "ftrace_events":
            cpu, last = packet.ftrace_events.cpu, 0
            for event in packet.ftrace_events.event:
                assert event.timestamp >= last
                last = event.timestamp
                which = event.WhichOneof("event")
                summary.switches[str(cpu)] += which == "sched_switch"
                summary.wakings += which == "sched_waking"
    # As trace_processor does it: sorted by time, at equal times in the order of the file.
    events.sort(key=lambda event: event[:2])
    open_slices = defaultdict(list)
    flows = defaultdict(list)
    for stamp, _, event, name, category, args in events:
        uuid = event.track_uuid
        track = (names[parents.get(uuid, uuid)], names[uuid])
        if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            assert not open_slices[uuid], f"{track}: {name} within a slice"
            open_slices[uuid].append((stamp, name, category[0], args))
        elif event.type == protos.TrackEvent.TYPE_SLICE_END:
            begin, name, category, args = open_slices[uuid].pop()
            summary.slice(track, begin, stamp, name, category, args)
        elif event.type == protos.TrackEvent.TYPE_COUNTER:
            assert uuid in counters
            summary.rates["/".join(track).removesuffix(" exits")] += event.counter_value
        elif event.flow_ids or event.terminating_flow_ids:
            assert category == ["flow"] and len(event.flow_ids) + len(event.terminating_flow_ids) == 1
            for one in event.flow_ids:
                flows[one].append((stamp, "t" if flows[one] else "s", name))
            for one in event.terminating_flow_ids:
                flows[one].append((stamp, "f", name))
        elif name == "recording":
            summary.recordings.append(args)
        else:
            summary.instants[name] += 1
    assert not any(open_slices.values()), "a slice without an end"
    for ends in flows.values():
        flow(summary, ends)


def ns(number, digits):
    """The exact value of a decimal number in units of 10^-digits."""
    whole, _, rest = number.partition(".")
    assert len(rest) <= digits, number
    return int(whole) * 10 ** digits + int(rest.ljust(digits, "0") or 0)


def chrome(path, summary):
    trace = json.load(open(path), parse_float=str)
    assert set(trace) == {"displayTimeUnit", "traceEvents", "otherData"}
    summary.recordings = trace["otherData"]["recordings"]
    groups, names = {}, {}
    events = []
    for event in trace["traceEvents"]:
        place = (event["pid"], event["tid"])
        assert type(event["pid"]) is int and type(event["tid"]) is int
        if event["ph"] == "M":
            if event["name"] == "process_name":
                groups[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                assert place not in names, "two tracks in one place"
                names[place] = event["args"]["name"]
            continue
        events.append((ns(str(event["ts"]), 3), len(events), place, event))
    events.sort(key=lambda event: event[:2])
    flows, slices, bound = defaultdict(list), defaultdict(list), []
    for begin, _, place, event in events:
        track = (groups[place[0]], names[place])
        if event["ph"] == "X":
            end = begin + ns(str(event["dur"]), 3)
            summary.slice(track, begin, end, event["name"], event["cat"], event["args"])
            slices[place].append((begin, end))
        elif event["ph"] in "stf":
            assert event["bp"] == "e" and event["cat"] == "flow"
            flows[event["id"]].append((begin, event["ph"], event["name"]))
            bound.append((begin, place))
        elif event["ph"] == "i":
            assert event["s"] == "t"
            summary.instants[event["name"]] += 1
        else:
            assert event["ph"] == "C"
            group, vcpu = groups[place[0]], event["name"].removesuffix(" exits/s")
            summary.rates[f"{group}/{vcpu}"] += event["args"]["exits"]
    for ends in flows.values():
        flow(summary, ends)
    # An end binds to the slice that is there. Guests' clocks are known to within a bound: with them a few
    # ends lie next to their slices.
    outside = 0
    for stamp, place in bound:
        last = bisect.bisect_right(slices[place], (stamp, float("inf")))
        if not any(begin <= stamp <= end for begin, end in slices[place][max(0, last - 2):last]):
            assert any(group.endswith(" tasks") for group in groups.values()), (stamp, names[place])
            outside += 1
    assert outside <= len(bound) / 50, f"{outside} of {len(bound)}"


def firefox(path, summary):
    profile = json.load(open(path), parse_float=str)
    meta = profile["meta"]
    assert meta["preprocessedProfileVersion"] == 55
    for extra in meta["extra"]:
        summary.recordings.append({one["label"]: one["value"] for one in extra["entries"]})
    schemas = {schema["name"] for schema in meta["markerSchema"]}
    for thread in profile["threads"]:
        track, strings = (thread["processName"], thread["name"]), thread["stringArray"]
        assert type(thread["pid"]) is str and type(thread["tid"]) is int
        for table in ["markers", "samples", "stackTable", "frameTable", "funcTable",
                      "nativeSymbols", "resourceTable"]:
            columns = dict(thread[table])
            length = columns.pop("length")
            columns.pop("weightType", None)
            assert all(len(column) == length for column in columns.values()), (track, table)
        markers, weights = thread["markers"], Counter()
        # Slices are samples, too, in the same order; a sample's outermost frame is the state.
        stacks, frames, functions = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        samples = thread["samples"]

        def called(stack):
            return strings[functions["name"][frames["func"][stacks["frame"][stack]]]]

        states = iter([called(one if stacks["prefix"][one] is None else stacks["prefix"][one])
                       for one in samples["stack"]])
        for at in range(markers["length"]):
            data, name = markers["data"][at], strings[markers["name"][at]]
            assert data["type"] in schemas
            assert markers["category"][at] < len(meta["categories"])
            begin, end = markers["startTime"][at], markers["endTime"][at]
            if markers["phase"][at] == 0:
                assert end is None
                summary.instants[name] += 1
                json.loads("{" + data["fields"] + "}") if "fields" in data else None
                continue
            assert markers["phase"][at] == 1
            category = next(states)
            begin, end = ns(str(begin), 6), ns(str(end), 6)
            summary.slice(track, begin, end, name, category, data)
            weights[name] += end - begin
        # The call tree must say the same as the markers.
        sampled, last = Counter(), 0
        assert samples["weightType"] == "tracing-ms"
        for at in range(samples["length"]):
            stamp = ns(str(samples["time"][at]), 6)
            assert stamp >= last
            last = stamp
            stack = samples["stack"][at]
            prefix = stacks["prefix"][stack]
            assert prefix is None or prefix < stack
            sampled[called(stack)] += ns(str(samples["weight"][at]), 6)
        assert sampled == weights, track


if __name__ == "__main__":
    result = Summary()
    {"perfetto": perfetto, "chrome": chrome, "firefox": firefox}[sys.argv[1]](sys.argv[2], result)
    result.print()
