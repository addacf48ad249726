#pragma once

#include "proxy/inspect/findings.h"
#include "proxy/inspect/stats.h"
#include "proxy/record/expectation.h"
#include "proxy/record/filter.h"
#include "proxy/record/json_lines.h"
#include "snapshot/object_set.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw {

/// The flags that `proxy` and `decode` share: where maps are, what is written, what is a failure.
struct RecordFlags {
    std::vector<std::string> maps;
    std::string map_cache;
    std::string output; ///< empty: no records
    std::string items = "changed";
    bool raw = false;
    bool no_messages = false;
    bool show_secrets = false;
    std::vector<std::string> fail_on;
    std::string filter;
    std::string console_filter;
    std::vector<std::string> expect;
    std::string summary; ///< file for the verdict; empty: none
    std::string pseudonym_key;
    std::string objects_file;

    void add_to(CLI::App& command);
    /// The objects to decode with: the table and what --objects adds. Errors: UsageError.
    [[nodiscard]] std::unique_ptr<snapshot::ObjectSet> objects() const;
    /// The filter of a flag; nothing when it was not given. Errors: UsageError.
    [[nodiscard]] std::optional<record::Filter>
    parse_filter(const std::string& flag, const std::string& text,
                 const snapshot::ObjectSet& objects) const;
    /// What --expect asks for. Errors: UsageError.
    [[nodiscard]] std::vector<record::Expectation>
    expectations(const snapshot::ObjectSet& objects) const;
    [[nodiscard]] record::JsonOptions json(const snapshot::ObjectSet& objects) const;
};

struct Check;

/// The findings that make a run fail: ids or severities ("warning" means warning and worse).
class FailOn {
  public:
    /// Errors: UsageError for what is neither.
    explicit FailOn(const std::vector<std::string>& words);

    /// One check a word: whether none of its findings occurred.
    [[nodiscard]] std::vector<Check> checks(const inspect::SessionStats& totals) const;

  private:
    struct Word {
        std::string text;
        std::array<bool, inspect::kFindingCount> fails{};
    };

    std::vector<Word> words_;
};

} // namespace tw
