/* A file layer that fails: preloaded into a process (LD_PRELOAD), it counts what the process does to the files below the
 * folder FAULT_DIR, and lets the operation number FAULT_AT (from 1) fail, as FAULT_MODE says:
 *
 *   nospace  this one fails with "no space left", the next ones work again
 *   full     from this one on nothing can be created or written
 *   crash    the process ends there; a write is half done
 *   power    the process ends there, and everything is lost that was not brought to disk: bytes behind the last sync of a
 *            file, and names that were made, changed or removed since the last sync of their folder
 *
 * Each operation is appended to the file FAULT_LOG: its number, what it is, and the path. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MAX_ = 1024, FDS = 4096, FILES = 8192, LOG = 8192 };
/* The function of the system that one of these stands before. */
#define REAL(name)                    \
    static __typeof__(&name) real;    \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *dir, *mode, *log_path;
static long at, count;
static int ready;

/* Open descriptors below the folder. */
static char *open_paths[FDS];
static char open_writable[FDS];

/* Bytes of each file that are on disk. */
static struct { char path[PATH_MAX_]; off_t synced; } files[FILES];
static int file_count;

/* What happened to names since their folder was synced. `backup` holds what stood at `to` before. */
static struct { char what; char from[PATH_MAX_], to[PATH_MAX_], backup[PATH_MAX_]; } names[LOG];
static int name_count, backups;

static int real_open(const char *path, int flags) {
    REAL(open64);
    return real(path, flags, 0600);
}
static ssize_t real_write(int fd, const void *bytes, size_t size) {
    REAL(write);
    return real(fd, bytes, size);
}
static int real_rename(const char *from, const char *to) {
    REAL(rename);
    return real(from, to);
}
static int real_unlink(const char *path) {
    REAL(unlink);
    return real(path);
}

static int real_close(int fd) {
    REAL(close);
    return real(fd);
}

static void prepare(void) {
    if (ready) return;
    ready = 1;
    dir = getenv("FAULT_DIR");
    mode = getenv("FAULT_MODE");
    log_path = getenv("FAULT_LOG");
    const char *number = getenv("FAULT_AT");
    at = number ? atol(number) : 0;
}

static int is(const char *name) { return mode && strcmp(mode, name) == 0; }
static int below(const char *path) {
    prepare();
    size_t length = dir ? strlen(dir) : 0;
    return length && strncmp(path, dir, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static off_t *synced(const char *path) {
    for (int i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0) return &files[i].synced;
    return NULL;
}
static void set_synced(const char *path, off_t length) {
    off_t *known = synced(path);
    if (!known && file_count < FILES) {
        snprintf(files[file_count].path, PATH_MAX_, "%s", path);
        known = &files[file_count++].synced;
    }
    if (known) *known = length;
}

static void note_name(char what, const char *from, const char *to) {
    if (!is("power") || name_count == LOG) return;
    names[name_count].what = what;
    snprintf(names[name_count].from, PATH_MAX_, "%s", from);
    snprintf(names[name_count].to, PATH_MAX_, "%s", to);
    names[name_count].backup[0] = 0;
    if (what != 'c' && access(to, F_OK) == 0) {
        snprintf(names[name_count].backup, PATH_MAX_, "%s.fault-%d", dir, backups++);
        if (link(to, names[name_count].backup) != 0) names[name_count].backup[0] = 0;
    }
    name_count++;
}

/* The names of a folder are on disk. */
static void settle(const char *folder) {
    int kept = 0;
    for (int i = 0; i < name_count; i++) {
        const char *slash = strrchr(names[i].to, '/');
        size_t length = slash ? (size_t)(slash - names[i].to) : 0;
        if (length == strlen(folder) && strncmp(names[i].to, folder, length) == 0) {
            if (names[i].backup[0]) real_unlink(names[i].backup);
        } else {
            if (kept != i) names[kept] = names[i];
            kept++;
        }
    }
    name_count = kept;
}

static void lose(void) {
    for (int i = 0; i < file_count; i++) {
        struct stat now;
        if (stat(files[i].path, &now) == 0 && now.st_size > files[i].synced) {
            if (truncate(files[i].path, files[i].synced) != 0) _exit(99);
        }
    }
    while (name_count-- > 0) {
        if (names[name_count].what == 'c') real_unlink(names[name_count].to);
        if (names[name_count].what == 'r') real_rename(names[name_count].to, names[name_count].from);
        if (names[name_count].backup[0]) real_rename(names[name_count].backup, names[name_count].to);
    }
}

/* Counts an operation. Whether it fails; ends the process where that is asked for. Called with the lock held. */
static int fails(const char *what, const char *path, int needs_space, int fd, const void *bytes, size_t size) {
    count++;
    if (log_path) {
        char line[PATH_MAX_ + 64];
        int log = real_open(log_path, O_WRONLY | O_CREAT | O_APPEND);
        int length = snprintf(line, sizeof line, "%ld %s %s\n", count, what, path);
        if (log >= 0 && real_write(log, line, (size_t)length) < 0) _exit(98);
        if (log >= 0) real_close(log);
    }
    if (!at || count < at) return 0;
    if (count == at && is("crash")) {
        if (bytes && real_write(fd, bytes, size / 2) < 0) _exit(97);
        _exit(137);
    }
    if (count == at && is("power")) {
        lose();
        _exit(137);
    }
    if ((count == at && is("nospace")) || (is("full") && needs_space)) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

static int opened(const char *path, int flags, mode_t permissions, int (*real)(const char *, int, ...)) {
    if (!below(path) || strlen(path) >= PATH_MAX_) return real(path, flags, permissions);
    pthread_mutex_lock(&lock);
    int existed = access(path, F_OK) == 0, writable = (flags & O_ACCMODE) != O_RDONLY, result = -1;
    int creates = writable && (flags & O_CREAT) && !existed;
    if (!creates || !fails("create", path, 1, -1, NULL, 0)) {
        result = real(path, flags, permissions);
        if (result >= 0 && result < FDS) {
            free(open_paths[result]);
            open_paths[result] = strdup(path);
            open_writable[result] = (char)writable;
        }
        if (result >= 0 && writable) {
            struct stat now;
            if (creates) note_name('c', path, path);
            if (!synced(path) || (flags & O_TRUNC) || creates)
                set_synced(path, fstat(result, &now) == 0 ? now.st_size : 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

#define OPEN(name)                                                         \
    int name(const char *path, int flags, ...) {                           \
        REAL(name);                                                  \
        va_list more;                                                      \
        va_start(more, flags);                                             \
        mode_t permissions = (flags & O_CREAT) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                      \
        return opened(path, flags, permissions, real);                     \
    }
OPEN(open)
OPEN(open64)

static const char *path_of(int fd) {
    return fd >= 0 && fd < FDS && open_writable[fd] ? open_paths[fd] : NULL;
}

int close(int fd) {
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < FDS) {
        free(open_paths[fd]);
        open_paths[fd] = NULL;
        open_writable[fd] = 0;
    }
    pthread_mutex_unlock(&lock);
    return real_close(fd);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (!path_of(fd)) return real_write(fd, bytes, size);
    pthread_mutex_lock(&lock);
    ssize_t result = fails("write", open_paths[fd], 1, fd, bytes, size) ? -1 : real_write(fd, bytes, size);
    pthread_mutex_unlock(&lock);
    return result;
}

static int brought_to_disk(int fd, const char *what, int (*real)(int)) {
    if (fd < 0 || fd >= FDS || !open_paths[fd]) return real(fd);
    pthread_mutex_lock(&lock);
    int result = fails(what, open_paths[fd], 0, -1, NULL, 0) ? -1 : real(fd);
    struct stat now;
    if (result == 0 && fstat(fd, &now) == 0) {
        if (S_ISDIR(now.st_mode)) settle(open_paths[fd]);
        else set_synced(open_paths[fd], now.st_size);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int fd) {
    REAL(fsync);
    return brought_to_disk(fd, "fsync", real);
}
int fdatasync(int fd) {
    REAL(fdatasync);
    return brought_to_disk(fd, "fdatasync", real);
}

static int cut(int fd, off_t length, int (*real)(int, off_t)) {
    if (!path_of(fd)) return real(fd, length);
    pthread_mutex_lock(&lock);
    int result = fails("truncate", open_paths[fd], 0, -1, NULL, 0) ? -1 : real(fd, length);
    off_t *known = synced(open_paths[fd]);
    if (result == 0 && known && *known > length) *known = length;
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate(int fd, off_t length) {
    REAL(ftruncate);
    return cut(fd, length, real);
}
int ftruncate64(int fd, off_t length) {
    REAL(ftruncate64);
    return cut(fd, length, real);
}

int rename(const char *from, const char *to) {
    if (!below(to)) return real_rename(from, to);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!fails("rename", to, 0, -1, NULL, 0)) {
        note_name('r', from, to);
        result = real_rename(from, to);
        off_t *known = synced(from);
        if (result == 0) set_synced(to, known ? *known : 0);
        if (result == 0 && known) set_synced(from, 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) {
    if (!below(path)) return real_unlink(path);
    pthread_mutex_lock(&lock);
    int result = -1;
    if (!fails("unlink", path, 0, -1, NULL, 0)) {
        note_name('u', path, path);
        result = real_unlink(path);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t permissions) {
    REAL(mkdir);
    if (!below(path) || access(path, F_OK) == 0) return real(path, permissions);
    pthread_mutex_lock(&lock);
    int result = fails("mkdir", path, 1, -1, NULL, 0) ? -1 : real(path, permissions);
    pthread_mutex_unlock(&lock);
    return result;
}
