// Which completion a queue gives next. Used by CompletionQueue; apart, as what
// it is about happens between two looks at the daemon's answers.

#ifndef CLIENT_RKNNRT_FIRST_ENDED_H_
#define CLIENT_RKNNRT_FIRST_ENDED_H_

#include <algorithm>

namespace rknnd::client {

// The first of [begin, end) that has ended; `end` when none has. Runs of one
// context end in their order, but while one after the other is looked at, some
// end: what was looked at too early has ended all the same when a later run of
// its context is found ended, and comes first. `ended`: looks at one;
// `together`: whether two are of one context.
template <class Iterator, class Ended, class Together>
Iterator FirstEnded(Iterator begin, Iterator end, Ended ended,
                    Together together) {
  const Iterator found = std::find_if(begin, end, ended);
  if (found == end) return end;
  return std::find_if(begin, found, [&](const auto& earlier) {
    return together(earlier, *found) && ended(earlier);
  });
}

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_FIRST_ENDED_H_
