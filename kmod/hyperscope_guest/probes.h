/* SPDX-License-Identifier: GPL-2.0 */
/* Groups of probes. */
#ifndef HYPERSCOPE_PROBES_H
#define HYPERSCOPE_PROBES_H

/* Bits of the mask in a stream's first record. */
#define HSG_SWITCH	0x01
#define HSG_WAKING	0x02
#define HSG_WAKEUP	0x04
#define HSG_IRQ		0x08
#define HSG_SYSCALLS	0x10
#define HSG_FUNCTIONS	0x20

int hsg_probes_init(void);

/* Enables one of the above; returns 0 or an error. */
int hsg_probe_on(unsigned int probe);
/* The probe may still run on another CPU when this returns. */
void hsg_probe_off(unsigned int probe);
/* Waits until no disabled probe runs. */
void hsg_probes_wait(void);

int hsg_functions_on(void);
void hsg_functions_off(void);

#endif
