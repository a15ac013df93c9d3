// Every class of qspin.hpp is a lock for the guards of the standard library.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <qspin.hpp>
#include <shared_mutex>
#include <thread>
#include <type_traits>

#include "every.h"

template <class Lock>
static void excludes() {
    static Lock lock;
    static_assert(!std::is_copy_constructible_v<Lock> && !std::is_move_constructible_v<Lock>);
    static_assert(std::is_nothrow_default_constructible_v<Lock> && std::is_trivially_destructible_v<Lock>);
    static_assert(noexcept(lock.lock()) && noexcept(lock.unlock()) && noexcept(lock.try_lock()));
    {
        std::lock_guard<Lock> guard(lock);
        std::unique_lock<Lock> other(lock, std::try_to_lock);
        REQUIRE(!other.owns_lock() && lock.is_locked());
    }
    REQUIRE(!lock.is_locked());
    std::unique_lock<Lock> guard(lock, std::try_to_lock);
    REQUIRE(guard.owns_lock());
    guard.unlock();
    Lock second;
    std::scoped_lock both(lock, second);
    REQUIRE(lock.is_locked() && second.is_locked());
}

template <class Lock, class Unlock> static void shares(Unlock unlock) {
    excludes<Lock>();
    Lock lock;
    std::shared_lock<Lock> one(lock), other(lock);
    REQUIRE(!lock.try_lock());
    one.unlock();
    other.unlock();
    REQUIRE(lock.try_lock() && !lock.try_lock_shared());
    unlock(lock);
    REQUIRE(!lock.is_locked());
}

int main() {
#define TEST(name, NAME)                                                                           \
    excludes<qspin::name>();                                                                       \
    static_assert(std::is_same_v<qspin::name::native_handle_type, qspin_##name##_t *>);
    EVERY_LOCK(TEST)
#define SHARED_TEST(name, NAME)                                                                    \
    shares<qspin::name>([](qspin::name &lock) { qspin_##name##_unlock(lock.native_handle()); });
    EVERY_SHARED(SHARED_TEST)

    using namespace std::chrono_literals;
    qspin::mutex mutex;
    qspin::condition_variable changed;
    bool is_so = false;
    std::unique_lock<qspin::mutex> held(mutex);
    REQUIRE(!changed.wait_for(held, 1ms, [&] { return is_so; }) && held.owns_lock());
    REQUIRE(changed.wait_until(held, std::chrono::system_clock::now() - 1s) == std::cv_status::timeout);
    std::thread other_thread([&] {
        std::unique_lock<qspin::mutex> guard(mutex, std::defer_lock);
        REQUIRE(guard.try_lock_for(std::chrono::hours(24 * 365)));
        is_so = true;
        changed.notify_all();
    });
    changed.wait(held, [&] { return is_so; });
    other_thread.join();
    held.unlock();
    qspin::rwlock rw;
    std::shared_lock<qspin::rwlock> reads(rw, 1ms);
    REQUIRE(reads.owns_lock() && !rw.try_lock_for(1ms));
    REQUIRE(rw.try_lock_shared_until(std::chrono::steady_clock::now() + 1ms));
    rw.unlock_shared();
    std::puts("every class is a lock");
    return 0;
}
