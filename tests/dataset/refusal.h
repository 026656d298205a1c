// What an error says.
#pragma once

#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "ricci/support/error.h"

namespace ricci::testing {

template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

inline ::testing::AssertionResult says(const std::string& text,
                                       std::initializer_list<const char*> words) {
  for (const char* word : words) {
    if (text.find(word) == std::string::npos) {
      return ::testing::AssertionFailure() << "no '" << word << "' in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace ricci::testing
