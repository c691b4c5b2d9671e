// Ranks by MPI: the whole of the module posattn_mpi.so, and the only file that sees <mpi.h>.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>

#include "posattn/base/error.h"
#include "posattn/mpi/ranks.h"

namespace posattn {
namespace {

constexpr std::size_t most_bytes = 1U << 30U;     // MPI counts in int
constexpr std::size_t most_elements = 1U << 26U;  // summed at a time

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ExitCode::failed, fmt::format("MPI could not {}: {}", what, text), "",
              "start the same command again: it goes on from what is saved");
}

int byte_count(std::size_t size) {
  if (size <= most_bytes) return static_cast<int>(size);
  throw Error(ExitCode::failed, fmt::format("a message of {} bytes between ranks", size),
              fmt::format("at most {}", most_bytes));
}

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "start");
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "start");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "tell the rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "tell the number of ranks");
    MPI_Comm node = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node),
          "find the ranks of this machine");
    MPI_Comm_rank(node, &node_rank_);
    MPI_Comm_size(node, &node_size_);
    MPI_Comm_free(&node);
  }

  ~MpiRanks() override {
    // A request is begun by one function and waited for by another, which the checker cannot
    // follow. NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
    for (Sending& sending : sending_) MPI_Wait(&sending.request, MPI_STATUS_IGNORE);
    // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int node_rank() const override { return node_rank_; }
  int node_size() const override { return node_size_; }

  void send(int to, int tag, std::string_view bytes) override {
    const int count = byte_count(bytes.size());
    Sending& sending = sending_.emplace_back(Sending{std::string(bytes), MPI_REQUEST_NULL});
    // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
    check(
        MPI_Isend(sending.bytes.data(), count, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sending.request),
        "send a message");
    // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
    forget_sent();
  }

  std::optional<RankMessage> poll(int from, int tag) override {
    forget_sent();
    int found = 0;
    MPI_Status status;
    check(MPI_Iprobe(source(from), tag_of(tag), MPI_COMM_WORLD, &found, &status),
          "look for messages");
    if (found == 0) return std::nullopt;
    return take(status);
  }

  RankMessage receive(int from, int tag) override {
    forget_sent();
    MPI_Status status;
    check(MPI_Probe(source(from), tag_of(tag), MPI_COMM_WORLD, &status), "wait for a message");
    return take(status);
  }

  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "wait for the other ranks"); }

  std::string broadcast(std::string_view bytes, int root) override {
    uint64_t size = bytes.size();
    check(MPI_Bcast(&size, 1, MPI_UINT64_T, root, MPI_COMM_WORLD), "broadcast");
    std::string result(rank_ == root ? bytes : std::string_view());
    result.resize(size);
    for (std::size_t begin = 0; begin < size; begin += most_bytes) {
      const int count = byte_count(std::min<std::size_t>(most_bytes, size - begin));
      check(MPI_Bcast(result.data() + begin, count, MPI_BYTE, root, MPI_COMM_WORLD), "broadcast");
    }
    return result;
  }

  std::vector<std::string> gather(std::string_view bytes) override {
    const int count = byte_count(bytes.size());
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> counts(ranks), places(ranks);
    check(MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD), "gather");
    std::size_t total = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
      places[i] = byte_count(total);
      total += static_cast<std::size_t>(counts[i]);
    }
    std::string all(total, '\0');
    check(MPI_Gatherv(bytes.data(), count, MPI_BYTE, all.data(), counts.data(), places.data(),
                      MPI_BYTE, 0, MPI_COMM_WORLD),
          "gather");
    std::vector<std::string> result;
    if (rank_ != 0) return result;
    for (std::size_t i = 0; i < ranks; ++i) {
      result.push_back(
          all.substr(static_cast<std::size_t>(places[i]), static_cast<std::size_t>(counts[i])));
    }
    return result;
  }

  void sum(std::span<float> values) override { sum_of(values, MPI_FLOAT, float_terms_); }
  void sum(std::span<double> values) override { sum_of(values, MPI_DOUBLE, double_terms_); }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::abort();  // never reached: MPI_Abort does not return
  }

 private:
  struct Sending {
    std::string bytes;
    MPI_Request request;
  };

  static int source(int from) { return from == any ? MPI_ANY_SOURCE : from; }
  static int tag_of(int tag) { return tag == any ? MPI_ANY_TAG : tag; }

  void forget_sent() {
    sending_.remove_if([](Sending& sending) {
      int sent = 0;
      check(MPI_Test(&sending.request, &sent, MPI_STATUS_IGNORE), "send a message");
      return sent != 0;
    });
  }

  RankMessage take(const MPI_Status& found) {
    int count = 0;
    check(MPI_Get_count(&found, MPI_BYTE, &count), "measure a message");
    RankMessage message{found.MPI_SOURCE, found.MPI_TAG,
                        std::string(static_cast<std::size_t>(count), '\0')};
    check(MPI_Recv(message.bytes.data(), count, MPI_BYTE, message.from, message.tag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE),
          "receive a message");
    return message;
  }

  template <typename Number>
  void sum_of(std::span<Number> values, MPI_Datatype type, std::vector<Number>& terms) {
    for (std::size_t begin = 0; begin < values.size(); begin += most_elements) {
      sum_some(values.subspan(begin, std::min(most_elements, values.size() - begin)), type, terms);
    }
  }

  // Each rank gets everybody's numbers of its share, adds them by rank, and gives back the sums.
  template <typename Number>
  void sum_some(std::span<Number> values, MPI_Datatype type, std::vector<Number>& terms) {
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> counts(ranks), places(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      places[i] = static_cast<int>(values.size() * i / ranks);
      counts[i] = static_cast<int>(values.size() * (i + 1) / ranks) - places[i];
    }
    const int mine = counts[static_cast<std::size_t>(rank_)];
    const std::vector<int> received(ranks, mine);
    std::vector<int> received_places(ranks);
    for (std::size_t i = 0; i < ranks; ++i) received_places[i] = static_cast<int>(i) * mine;
    const auto share = static_cast<std::size_t>(mine);
    terms.resize(ranks * share);
    check(MPI_Alltoallv(values.data(), counts.data(), places.data(), type, terms.data(),
                        received.data(), received_places.data(), type, MPI_COMM_WORLD),
          "share out the terms of a sum");
    for (std::size_t i = 1; i < ranks; ++i) {
      for (std::size_t j = 0; j < share; ++j) terms[j] += terms[i * share + j];
    }
    check(MPI_Allgatherv(terms.data(), mine, type, values.data(), counts.data(), places.data(),
                         type, MPI_COMM_WORLD),
          "collect a sum");
  }

  int rank_ = 0, size_ = 1, node_rank_ = 0, node_size_ = 1;
  std::list<Sending> sending_;  // until they have left: MPI keeps their addresses
  // Of the sum under way; kept, since a gradient is summed in every step.
  std::vector<float> float_terms_;
  std::vector<double> double_terms_;
};

}  // namespace
}  // namespace posattn

extern "C" posattn::Ranks* posattn_open_ranks() { return new posattn::MpiRanks; }

// "Open MPI v4.1.4"; what MPI says beyond a comma or line is of its packaging. Needs no start.
extern "C" const char* posattn_mpi_version() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "an unknown MPI";
  text[std::strcspn(text, ",\n")] = '\0';
  return text;
}
