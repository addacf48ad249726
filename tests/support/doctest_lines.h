#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

/// Makes doctest print the lines that a failed check compared.
template <>
struct doctest::StringMaker<std::vector<std::string>> {
    static String convert(const std::vector<std::string>& lines) {
        std::string text;
        for (const std::string& line : lines) {
            text += line + "; ";
        }
        return text.c_str();
    }
};
