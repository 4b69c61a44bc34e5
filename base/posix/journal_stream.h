// Whether a stream goes to systemd's journal, as the service manager says in
// the environment of what it starts. Used by programs that write lines to
// stderr.

#ifndef BASE_POSIX_JOURNAL_STREAM_H_
#define BASE_POSIX_JOURNAL_STREAM_H_

namespace rknnd::base {

// `variable`: JOURNAL_STREAM's value, or null. Whether `fd` is the stream that
// it names: it may come from a service whose stderr was another. Thread: any.
bool IsJournalStream(const char* variable, int fd);

}  // namespace rknnd::base

#endif  // BASE_POSIX_JOURNAL_STREAM_H_
