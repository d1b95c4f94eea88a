// SPDX-License-Identifier: MIT
// Tells ThreadSanitizer of the part of Swift's Mutex that it cannot see, so that no report has to be suppressed.
//
// A Mutex that is free is taken by an atomic operation in the program itself, which is instrumented. One that is taken is waited for in
// libswiftSynchronization, with a futex: that library is not instrumented, and a lock that changes hands there looks like no lock at all. The
// shortest program shows it: two threads that append to one Mutex<[Int]> are reported, and are not any more with the two words below.
//
// Built as a shared object by test-sanitized, and put before the library with LD_PRELOAD.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

// Method of Synchronization._MutexHandle: self is in the context register.
#define SELF __attribute__((swift_context)) void *mutex
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef __attribute__((swiftcall)) void Lock(uint32_t thread, SELF);
typedef __attribute__((swiftcall)) void Unlock(SELF);

Lock lock_slow __asm__(LOCK);
Unlock unlock_slow __asm__(UNLOCK);

// Of the sanitizer; the compiler, which is run with this too, has none.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

__attribute__((swiftcall)) void lock_slow(uint32_t thread, SELF) {
    ((Lock *)dlsym(RTLD_NEXT, LOCK))(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

__attribute__((swiftcall)) void unlock_slow(SELF) {
    if (__tsan_release) __tsan_release(mutex);
    ((Unlock *)dlsym(RTLD_NEXT, UNLOCK))(mutex);
}
