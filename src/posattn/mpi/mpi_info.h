// What this program knows of MPI, without becoming a rank.
#pragma once

#include <string>

namespace posattn {

struct MpiInfo {
  bool built = false;   // this build can work in several ranks
  bool usable = false;  // and finds its MPI here; else `problem` and `hint` say why not
  std::string library;  // MPI's own words, "Open MPI v4.1.4"
  std::string problem, hint;
};

// Never throws. Loads MPI's libraries, but does not start it.
MpiInfo mpi_info();

}  // namespace posattn
