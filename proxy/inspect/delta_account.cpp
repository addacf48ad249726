#include "proxy/inspect/delta_account.h"

#include "snapshot/objects.h"
#include "snapshot/varint.h"

namespace tw::inspect {

bool DeltaAccount::read(std::int32_t& value) {
    const auto rest = body_.subspan(read_);
    const std::size_t used = snapshot::decode_varint(rest.data(), rest.size(), value);
    read_ += used;
    return used != 0;
}

void DeltaAccount::book(record::ByteGroup group, record::BytePart part, std::string_view name) {
    ledger_->charge(wire::Direction::s2c, group, part, name,
                    priced_.take(read_ - priced_.offset()));
}

void DeltaAccount::run() {
    // Every step reads at least one byte, so a body bounds the counts it claims.
    bool good = counts();
    for (std::int32_t i = 0; good && i < deleted_; ++i) {
        good = deletion();
    }
    for (std::int32_t i = 0; good && i < updated_; ++i) {
        good = update();
    }
    read_ = body_.size();
    book(record::ByteGroup::delta, record::BytePart::whole, good ? "surplus" : "damaged");
}

bool DeltaAccount::counts() {
    if (body_.empty()) {
        return true;
    }
    std::int32_t unused = 0;
    if (!read(deleted_) || !read(updated_) || !read(unused) || deleted_ < 0 || updated_ < 0) {
        return false;
    }
    book(record::ByteGroup::delta, record::BytePart::whole, "counts");
    return true;
}

bool DeltaAccount::deletion() {
    std::int32_t packed = 0;
    if (!read(packed)) {
        return false;
    }
    const auto key = snapshot::ItemKey::from_packed(static_cast<std::uint32_t>(packed));
    book(record::ByteGroup::deletion, record::BytePart::whole, type_name(key.type));
    return true;
}

bool DeltaAccount::update() {
    std::int32_t type = 0;
    std::int32_t id = 0;
    if (!read(type) || !read(id) || type < 0 || type > snapshot::kMaxItemType) {
        return false;
    }
    const auto narrow = static_cast<std::uint16_t>(type);
    auto size = static_cast<std::int32_t>(snapshot::agreed_size(narrow, types_->objects().sizes()));
    if (size == 0 && !read(size)) {
        return false;
    }
    // An int takes a byte at least.
    if (size < 0 || static_cast<std::size_t>(size) > body_.size() - read_) {
        return false;
    }
    const std::size_t head_end = read_;
    std::int32_t value = 0;
    for (std::int32_t i = 0; i < size; ++i) {
        if (!read(value)) {
            return false;
        }
    }
    const std::string_view name = type_name(narrow);
    const std::size_t end = read_;
    read_ = head_end;
    book(record::ByteGroup::item, record::BytePart::head, name);
    read_ = end;
    book(record::ByteGroup::item, record::BytePart::fields, name);
    return true;
}

std::string_view DeltaAccount::type_name(std::uint16_t type) {
    if (const snapshot::ObjectSpec* object = types_->object(type); object != nullptr) {
        return object->name;
    }
    if (type == snapshot::kDescriptorType) {
        return "type descriptor";
    }
    if (const record::TypeNames::Entry* entry = types_->find(type); entry != nullptr) {
        const auto text = snapshot::format_uuid(entry->uuid);
        room_.assign(text.data(), text.size());
    } else {
        room_ = "type " + std::to_string(type);
    }
    return room_;
}

} // namespace tw::inspect
