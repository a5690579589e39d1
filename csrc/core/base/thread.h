// Starts threads that leave the program's signals alone.
#pragma once

#include <functional>
#include <thread>

namespace tfrfast {

// Starts a thread that runs `work`, which must not throw. Signals to the process never interrupt
// the thread; the program's own threads handle signals. Faults reach the thread, so that
// `faulthandler` and our own guard can handle them. Throws Error io if the system starts no more
// threads, or has too little memory for a thread that can throw.
std::thread start_thread(std::function<void()> work);

// Allocates the calling thread's exception storage now. The C++ library allocates the storage at
// the first exception, and ends the process if that fails.
void prepare_to_throw() noexcept;

// Blocks every signal but faults on the calling thread, as start_thread() does on a new thread.
void leave_signals_to_others() noexcept;

}  // namespace tfrfast
