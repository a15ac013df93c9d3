// The guards of the standard library over qspin's locks.
#include <iostream>
#include <map>
#include <mutex>
#include <qspin.hpp>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

class Directory {
public:
    void enter(const std::string &name, int number) {
        std::lock_guard<qspin::queued_rw> guard(lock_);
        numbers_[name] = number;
    }

    [[nodiscard]] int find(const std::string &name) const {
        std::shared_lock<qspin::queued_rw> guard(lock_);
        auto found = numbers_.find(name);
        return found == numbers_.end() ? -1 : found->second;
    }

private:
    mutable qspin::queued_rw lock_;
    std::map<std::string, int> numbers_;
};

struct Account {
    qspin::paravirt lock;
    long balance = 1000;
};

void transfer(Account &from, Account &to) {
    std::scoped_lock guard(from.lock, to.lock);  // both, in an order that cannot deadlock
    from.balance--;
    to.balance++;
}

}  // namespace

int main() {
    Directory directory;
    directory.enter("answer", 42);

    Account one, other;
    std::vector<std::thread> threads;
    threads.emplace_back([&] { for (int i = 0; i < 300; i++) transfer(one, other); });
    threads.emplace_back([&] { for (int i = 0; i < 100; i++) transfer(other, one); });
    for (auto &thread : threads) thread.join();

    std::cout << directory.find("answer") << ' ' << directory.find("question") << ' ' << one.balance << ' '
              << other.balance << '\n';
    return one.balance == 800 && other.balance == 1200 ? 0 : 1;
}
