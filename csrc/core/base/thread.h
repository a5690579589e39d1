// Threads of ours, which leave the program's signals alone.
#pragma once

#include <functional>
#include <thread>

namespace tfrfast {

// Starts a thread that runs `work`, which may not throw. Signals sent to the process never
// interrupt it, because they are meant for the program's own threads. Faults do reach it, so that
// `faulthandler` and our own guard can handle them. Throws Error io if the system has no more
// threads, or too little memory for one that can throw.
std::thread start_thread(std::function<void()> work);

// Takes now what the C++ library needs for the first exception of the calling thread. If it cannot
// have that memory later, it ends the process.
void prepare_to_throw() noexcept;

// Blocks every signal but faults on the calling thread, as start_thread() does on those it starts.
void leave_signals_to_others() noexcept;

}  // namespace tfrfast
