#include "posattn/report/markup.h"

#include <gtest/gtest.h>

namespace posattn {
namespace {

constexpr const char* replacement = "\xef\xbf\xbd";

TEST(Markup, EscapesTheSpecialCharacters) {
  EXPECT_EQ(escape_markup("a < b && \"c\" > 'd'"),
            "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;");
}

TEST(Markup, KeepsWellFormedUtf8) {
  const std::string text = "Veli\u010dkovi\u0107 \u2264 c\u00b2 \U0001F600\n\t";
  EXPECT_EQ(escape_markup(text), text);
}

TEST(Markup, ReplacesWhatXmlForbids) {
  EXPECT_EQ(escape_markup(std::string_view("a\0b", 3)), std::string("a") + replacement + "b");
  EXPECT_EQ(escape_markup("\x1b"), replacement);
  EXPECT_EQ(escape_markup("\xff!"), std::string(replacement) + "!");
  // A cut-off character, an overlong slash, a surrogate: one mark per byte.
  EXPECT_EQ(escape_markup("\xe2\x82"), std::string(replacement) + replacement);
  EXPECT_EQ(escape_markup("\xc0\xaf"), std::string(replacement) + replacement);
  EXPECT_EQ(escape_markup("\xed\xa0\x80"), std::string(replacement) + replacement + replacement);
}

TEST(Markup, ValidTextHasNoEntities) {
  EXPECT_EQ(valid_text("a < b\xff & c"), std::string("a < b") + replacement + " & c");
}

}  // namespace
}  // namespace posattn
