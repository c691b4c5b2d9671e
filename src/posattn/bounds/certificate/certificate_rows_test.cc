#include "posattn/bounds/certificate/certificate_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"

namespace posattn::bounds {
namespace {

TEST(CertificateRows, GiveEachRunsLastBound) {
  const auto risks = certified_risks(
      "{\"run\": \"a\", \"randomised\": {\"bound\": 0.5}}\n\n"
      "{\"run\": \"b\", \"randomised\": {\"bound\": 0.25, \"fresh_loss\": 0.1}}\n"
      "{\"run\": \"a\", \"randomised\": {\"bound\": 0.125}}",
      "rows.jsonl");
  EXPECT_THAT(risks, testing::ElementsAre(testing::Pair("a", 0.125), testing::Pair("b", 0.25)));
}

TEST(CertificateRows, NameTheLineThatIsNone) {
  for (const char* line : {"no JSON", "[]", "{\"run\": \"a\"}", "{\"run\": 1, \"randomised\": {}}",
                           "{\"run\": \"a\", \"randomised\": {\"bound\": \"high\"}}"}) {
    SCOPED_TRACE(line);
    try {
      certified_risks(std::string("\n") + line, "rows.jsonl");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.what(), testing::HasSubstr("rows.jsonl:2"));
    }
  }
}

}  // namespace
}  // namespace posattn::bounds
