#pragma once

#include "proxy/inspect/attribution.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tw::inspect {

/// Books the bytes of one delta body on its items. Tolerates what decoding rejects: what cannot be
/// read is booked as damaged.
class DeltaAccount {
  public:
    DeltaAccount(std::span<const std::byte> body, PricedBytes priced,
                 const record::TypeNames& types, record::Ledger& ledger)
        : body_{body}, priced_{priced}, types_{&types}, ledger_{&ledger} {}

    void run();

  private:
    [[nodiscard]] bool read(std::int32_t& value);
    [[nodiscard]] bool counts();
    [[nodiscard]] bool deletion();
    [[nodiscard]] bool update();
    [[nodiscard]] std::string_view type_name(std::uint16_t type);
    /// Books what was read since the last call.
    void book(record::ByteGroup group, record::BytePart part, std::string_view name);

    std::span<const std::byte> body_;
    PricedBytes priced_;
    const record::TypeNames* types_;
    record::Ledger* ledger_;
    std::size_t read_ = 0; ///< bytes read; those that `priced_` still has are not booked yet
    std::int32_t deleted_ = 0;
    std::int32_t updated_ = 0;
    std::string room_; ///< for names that are made up
};

} // namespace tw::inspect
