//! Parses `[NAME=]trace-cmd:VM` and `[NAME=]trace-cmd:CHANNEL`: guests with trace-cmd's agent.

use channel::HostAddress;
use channel::wire::trace_cmd::PORT;
use vms::{GuestAddress, NoGuest, Vm, file_name};

use crate::error::{RecordError, Result};

/// Prefix of such addresses, after the name.
const PREFIX: &str = "trace-cmd:";
const USAGE: &str = "write trace-cmd:VM, trace-cmd:vsock:CID[:PORT] or trace-cmd:tcp:HOST:PORT";

/// The guest of such an address; `None` for other addresses.
///
/// # Errors
/// When the guest has no usable channel.
pub(crate) fn find(spec: &str, vms: &[Vm]) -> Option<Result<GuestAddress>> {
    let (name, to) = match spec.split_once('=') {
        Some((name, to)) if !name.contains(':') => (Some(name), to),
        _ => (None, spec),
    };
    let to = to.strip_prefix(PREFIX)?;
    Some(found(name, to, vms))
}

fn found(name: Option<&str>, to: &str, vms: &[Vm]) -> Result<GuestAddress> {
    let (channel, vm) = match vms::called(vms, to)? {
        Some(vm) => {
            let no_channel = || RecordError::NoGuest(NoGuest::NoChannel { name: vm.name.clone() });
            let channel =
                HostAddress::Vsock { cid: vm.vsock_cid.ok_or_else(no_channel)?, port: PORT };
            vms::reached(vms, &channel)?;
            (channel, Some(vm))
        }
        None => {
            let channel = channel(to)?;
            let named = name.map(|name| vms::called(vms, name)).transpose()?.flatten();
            let vm = match named {
                Some(vm) => Some(vm),
                None => vms::reached(vms, &channel)?,
            };
            (channel, vm)
        }
    };
    let vm_name = vm.map(|vm| vm.name.as_str());
    let name = name.or(vm_name).map_or_else(|| file_name(&channel.to_string()), file_name);
    Ok(GuestAddress { name, channel, vm: vm.cloned() })
}

fn channel(text: &str) -> Result<HostAddress> {
    let wrong = || RecordError::Usage(format!("{PREFIX}{text} is not a running guest: {USAGE}"));
    if let Some(cid) = text.strip_prefix("vsock:").and_then(|cid| cid.parse().ok()) {
        return Ok(HostAddress::Vsock { cid, port: PORT });
    }
    // trace-cmd has only plain TCP.
    match text.replacen("tcp:", "tcp-plain:", 1).parse() {
        Ok(channel @ (HostAddress::Vsock { .. } | HostAddress::Tcp { .. })) => Ok(channel),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(name: &str, vsock_cid: Option<u32>) -> Vm {
        let (program, vcpus, channels) = ("qemu".into(), Vec::new(), Vec::new());
        Vm { name: name.into(), pid: 77, program, vcpus, threads: Vec::new(), vsock_cid, channels }
    }

    #[test]
    fn guests_by_name_and_by_address() {
        let vms = [vm("web", Some(3)), vm("db", None)];
        let find = |spec: &str| {
            find(spec, &vms).map(|found| {
                found.map(|found| (found.name, found.channel.to_string(), found.vm.is_some()))
            })
        };
        let web = |name: &str, channel: &str, known| Some((name.into(), channel.into(), known));
        for (spec, expected) in [
            ("trace-cmd:web", web("web", "vsock:3:823", true)),
            ("trace-cmd:vsock:3", web("web", "vsock:3:823", true)),
            ("trace-cmd:vsock:3:99", web("web", "vsock:3:99", true)),
            ("a/b=trace-cmd:vsock:4", web("a-b", "vsock:4:823", false)),
            ("web=trace-cmd:tcp:10.0.0.2:823", web("web", "tcp-plain:10.0.0.2:823", true)),
            ("trace-cmd:tcp:h:1", web("tcp-plain-h-1", "tcp-plain:h:1", false)),
        ] {
            assert_eq!(find(spec).transpose().unwrap(), expected, "{spec}");
        }
        assert!(find("web").is_none() && find("vsock:3").is_none());
        assert!(
            find("trace-cmd:db").unwrap().unwrap_err().to_string().contains("no visible channel")
        );
        for wrong in ["trace-cmd:", "trace-cmd:other", "trace-cmd:unix:/s", "trace-cmd:vsock:x"] {
            let error = find(wrong).unwrap().unwrap_err().to_string();
            assert!(error.contains("trace-cmd:vsock:CID"), "{error}");
        }
    }
}
