#include "posattn/programs/ranks/passing.h"

#include <gmock/gmock.h>

#include <set>

namespace posattn {
namespace {

using testing::Each;
using testing::Le;

// Machine 0's word for all.
Round broadcast(int machines) {
  Round round;
  round.receives.resize(1);
  round.receives[0].route.sources.assign(machines, 0);
  return round;
}

TEST(Passing, StraightWhereItFits) {
  const Passing passing(broadcast(5), 5, 4);
  EXPECT_EQ(passing.rounds(), 1);
  EXPECT_THAT(passing.sent_by(0), testing::ElementsAre(4));
  EXPECT_THAT(passing.sent_by(3), testing::ElementsAre(0));
}

TEST(Passing, EverybodyHearsOnce) {
  for (const int machines : {2, 3, 6, 8, 9, 33}) {
    const Passing passing(broadcast(machines), machines, 1);
    ASSERT_EQ(passing.words().size(), 1U);
    const PassedWord& word = passing.words().front();
    std::set<int> have = {0};
    int sent = 0;
    for (int machine = 0; machine < machines; ++machine) {
      const int place = word.place_of(machine);
      ASSERT_GE(place, 0);
      EXPECT_EQ(word.machine_at(place), machine);
      EXPECT_THAT(passing.sent_by(machine), Each(Le(1)));
      EXPECT_EQ(passing.received_by(machine), machine == 0 ? 0 : 1);
      for (const int to : passing.takers(word, place)) {
        EXPECT_EQ(passing.giver(to), place);
        EXPECT_TRUE(have.insert(to).second);
        ++sent;
      }
    }
    EXPECT_EQ(sent, machines - 1);
    EXPECT_GE(1 << passing.rounds(), machines);
    EXPECT_LT(1 << (passing.rounds() - 1), machines);
  }
}

TEST(Passing, MessagesByDataComeFirst) {
  Round round = broadcast(5);
  round.receives.resize(2);
  round.receives[1].route.destination = 0;
  EXPECT_EQ(Passing(round, 5, 5).rounds(), 1);
  EXPECT_EQ(Passing(round, 5, 4).rounds(), 3);
}

}  // namespace
}  // namespace posattn
