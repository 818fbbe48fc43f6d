//! Machines, CPUs, threads, vCPUs and exits on one clock.
