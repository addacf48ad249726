#include "tests/support/damage.h"

namespace tw::test {

std::size_t random_below(std::mt19937& random, std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>{0, limit - 1}(random);
}

std::byte any_byte(std::mt19937& random) {
    return static_cast<std::byte>(random_below(random, 256));
}

void damage(std::vector<std::byte>& bytes, std::mt19937& random) {
    if (bytes.empty()) {
        return;
    }
    switch (random_below(random, 6)) {
    case 0:
        bytes[random_below(random, bytes.size())] ^=
            static_cast<std::byte>(1U << random_below(random, 8));
        break;
    case 1:
        bytes.resize(random_below(random, bytes.size()));
        break;
    case 2:
        bytes.insert(bytes.begin() +
                         static_cast<std::ptrdiff_t>(random_below(random, bytes.size())),
                     any_byte(random));
        break;
    case 3:
        bytes[random_below(random, bytes.size())] = std::byte{0xFF};
        break;
    case 4:
        for (std::size_t i = random_below(random, bytes.size()); i < bytes.size(); ++i) {
            bytes[i] = any_byte(random);
        }
        break;
    default:
        bytes.erase(bytes.begin() +
                    static_cast<std::ptrdiff_t>(random_below(random, bytes.size())));
        break;
    }
}

} // namespace tw::test
