//! From the loader to long mode: the first processor by the PVH entry, all others by the trampoline.
//!
//! The loader finds the entry in an ELF note and jumps there in 32-bit protected mode, without
//! paging, with the address of the start information in `ebx`. A processor that is started finds
//! itself in real mode at the start of a page below 1 MiB, where [`qspin_guest::processors`] has put the
//! trampoline. Both then take the same steps: page tables (4 GiB, each address its own), long mode
//! with SSE (precompiled `core` uses it), a stack.

use core::arch::global_asm;

use qspin_guest::boot::STACK;
use qspin_guest::hardware::cpu::MAX;
use qspin_guest::processors::TRAMPOLINE;

global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 4, 18                  # sizes of name and entry; XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .balign 4
    .long qspin_start

    .section .text.boot, "ax"
    .code32
    .global qspin_start
qspin_start:
    cli
    cld
    # Page tables: one PML4 and one PDPT entry each way, 2048 pages of 2 MiB. The memory is zero.
    movl $(qspin_pdpt + 3), qspin_pml4
    movl $(qspin_pages + 3), %eax
    movl $qspin_pdpt, %edi
    movl $4, %ecx
2:  movl %eax, (%edi)
    addl $4096, %eax
    addl $8, %edi
    decl %ecx
    jnz 2b
    movl $0x83, %eax
    movl $qspin_pages, %edi
    movl $2048, %ecx
3:  movl %eax, (%edi)
    addl $0x200000, %eax
    addl $8, %edi
    decl %ecx
    jnz 3b
    # The registers of the APIC, at 0xfee00000, are not to be cached.
    orl $0x18, qspin_pages + 2039 * 8

qspin_to_long_mode:
    movl $qspin_pml4, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x620, %eax                # PAE, OSFXSR, OSXMMEXCPT
    movl %eax, %cr4
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x100, %eax                # LME
    wrmsr
    movl %cr0, %eax
    andl $0x1ffffffb, %eax          # caches on, no emulation of the FPU
    orl $0x80000023, %eax           # paging, protection, native FPU errors
    movl %eax, %cr0
    lgdt qspin_boot_gdt_pointer
    ljmp $0x08, $qspin_long_mode

qspin_other_32:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %ss
    xorl %ebx, %ebx                 # no start information: not the first processor
    jmp qspin_to_long_mode

    .code64
qspin_long_mode:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    xorl %eax, %eax
    movw %ax, %fs
    movw %ax, %gs
    xorl %ebp, %ebp
    fninit
    movl %ebx, %edi
    testl %edi, %edi
    jz 4f
    leaq qspin_stacks + {stack}(%rip), %rsp
    call qspin_main
4:  # Numbers in the order of arrival. There may be more processors than numbers.
    movl $1, %edi
    lock xaddl %edi, qspin_next_number(%rip)
    cmpl ${most}, %edi
    jae 5f
    leal 1(%rdi), %eax
    imulq ${stack}, %rax, %rax
    leaq qspin_stacks(%rip), %rsp
    addq %rax, %rsp
    call qspin_other
5:  cli
    hlt
    jmp 5b

    .section .rodata
    .balign 8
qspin_boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff        # 0x08: 64-bit code
    .quad 0x00cf93000000ffff        # 0x10: data
    .quad 0x00cf9b000000ffff        # 0x18: 32-bit code
qspin_boot_gdt_pointer:
    .word 31
    .long qspin_boot_gdt

    # Copied below 1 MiB: names nothing of its own by address.
    .global qspin_trampoline, qspin_trampoline_end
qspin_trampoline:
    .code16
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl {trampoline} + (6f - qspin_trampoline)
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x18, $qspin_other_32
    .balign 8
6:  .word 31
    .long qspin_boot_gdt
qspin_trampoline_end:
    .code64

    .section .data
    .balign 4
    .global qspin_next_number
qspin_next_number:
    .long 1

    .section .bss
    .balign 4096
qspin_pml4:
    .skip 4096
qspin_pdpt:
    .skip 4096
qspin_pages:
    .skip 4 * 4096
qspin_stacks:
    .skip {stack} * {most}
    "#,
    stack = const STACK,
    most = const MAX,
    trampoline = const TRAMPOLINE,
    options(att_syntax)
);

unsafe extern "C" {
    /// The first byte of the trampoline.
    pub(crate) static qspin_trampoline: u8;
    /// What lies behind its last.
    pub(crate) static qspin_trampoline_end: u8;
    /// The number of the next processor that starts.
    pub(crate) static mut qspin_next_number: u32;
}
