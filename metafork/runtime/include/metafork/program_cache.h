/* What compilers made, kept in files from one run of a program to the next.  C11 and C++.
 *
 *   XDG_CACHE_HOME        files lie in its metafork/, else in ~/.cache/metafork/
 *   METAFORK_CACHE=0      none is read and none is written
 *   METAFORK_CACHE_BYTES  what the files may take together, 256 MiB by default: where that is more after one was written,
 *                         the least recently used kernels are removed first
 *
 * What something is kept under, its key, is all that it was made of.  A file has the name of the key's hash and the key itself,
 * so that no other content is ever taken for it; a checksum finds what was written in part or damaged.  It is written under
 * another name and then renamed: several processes may do that at once.  Whatever fails, there is nothing in the cache, and
 * nobody is told.
 */
#ifndef METAFORK_PROGRAM_CACHE_H
#define METAFORK_PROGRAM_CACHE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes on the heap. */
typedef struct metafork_blob {
    unsigned char *data;
    size_t length;
} metafork_blob;

typedef struct metafork_cache_head {
    char magic[8];
    uint64_t key_length, length, checksum;
} metafork_cache_head;

enum { METAFORK_CACHE_PATH = 4096 };
#define METAFORK_CACHE_MAGIC "mfcache1"
#define METAFORK_CACHE_MOST (UINT64_C(1) << 30)
#define METAFORK_CACHE_BYTES (UINT64_C(256) << 20)

/* FNV-1a of 64 bits, continued from `hash`. */
static inline uint64_t metafork_hash(uint64_t hash, const void *data, size_t length) {
    for (size_t i = 0; i < length; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t metafork_cache_checksum(metafork_blob key, metafork_blob content) {
    return metafork_hash(metafork_hash(UINT64_C(0xcbf29ce484222325), key.data, key.length), content.data, content.length);
}

/* Whether there may be a cache, and its folder. */
static inline bool metafork_cache_folder(char *path, size_t room) {
    const char *const wanted = getenv("METAFORK_CACHE"), *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
    int length = -1;
    if (wanted != NULL && strcmp(wanted, "0") == 0) return false;
    if (cache != NULL && cache[0] == '/') /* what is no absolute path is to be ignored */
        length = snprintf(path, room, "%s/metafork", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(path, room, "%s/.cache/metafork", home);
    return length > 0 && (size_t)length < room;
}

/* The path of a key's file; makes the folders where `make` is set. */
static inline bool metafork_cache_path(metafork_blob key, bool make, char *path) {
    char folder[METAFORK_CACHE_PATH - 64];
    if (!metafork_cache_folder(folder, sizeof folder)) return false;
    for (char *at = folder + 1; make; at++)
        if (*at == '/' || *at == '\0') {
            const char kept = *at;
            *at = '\0';
            (void)mkdir(folder, 0700); /* it may be there */
            *at = kept;
            if (kept == '\0') break;
        }
    const uint64_t one = metafork_hash(UINT64_C(0xcbf29ce484222325), key.data, key.length);
    const uint64_t other = metafork_hash(UINT64_C(0x84222325cbf29ce4), key.data, key.length);
    snprintf(path, METAFORK_CACHE_PATH, "%s/%016llx%016llx", folder, (unsigned long long)one, (unsigned long long)other);
    return true;
}

static inline bool metafork_cache_get(int file, void *data, size_t length) {
    for (size_t done = 0; done < length;) {
        const ssize_t count = read(file, (char *)data + done, length - done);
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return true;
}

static inline bool metafork_cache_put(int file, const void *data, size_t length) {
    for (size_t done = 0; done < length;) {
        const ssize_t count = write(file, (const char *)data + done, length - done);
        if (count <= 0) return false;
        done += (size_t)count;
    }
    return true;
}

/* Read an open file; no bytes where it is not whole, not the key's, or somebody else's. */
static inline metafork_blob metafork_cache_content(int file, metafork_blob key) {
    metafork_blob kept = {NULL, 0}, nothing = {NULL, 0}, content = {NULL, 0};
    metafork_cache_head head;
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid()) return nothing;
    if (!metafork_cache_get(file, &head, sizeof head) || memcmp(head.magic, METAFORK_CACHE_MAGIC, sizeof head.magic) != 0) return nothing;
    if (head.key_length != key.length || head.length == 0 || head.length > METAFORK_CACHE_MOST) return nothing;
    if ((uint64_t)about.st_size != sizeof head + head.key_length + head.length) return nothing;
    kept.length = key.length;
    kept.data = (unsigned char *)malloc(kept.length + 1);
    content.length = (size_t)head.length;
    content.data = (unsigned char *)malloc(content.length);
    const bool same = kept.data != NULL && content.data != NULL && metafork_cache_get(file, kept.data, kept.length) &&
                      memcmp(kept.data, key.data, key.length) == 0 && metafork_cache_get(file, content.data, content.length) &&
                      metafork_cache_checksum(kept, content) == head.checksum;
    free(kept.data);
    if (same) return content;
    free(content.data);
    return nothing;
}

/* What is kept under a key, for the caller to free; no bytes where there is nothing. */
static inline metafork_blob metafork_cache_read(metafork_blob key) {
    char path[METAFORK_CACHE_PATH];
    metafork_blob nothing = {NULL, 0};
    if (!metafork_cache_path(key, false, path)) return nothing;
    /* What is no file, a pipe for instance, is not waited for. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return nothing;
    const metafork_blob found = metafork_cache_content(file, key);
    if (found.data != NULL) (void)futimens(file, NULL); /* used now */
    (void)close(file);
    return found;
}

typedef struct metafork_cache_file {
    struct timespec used;
    uint64_t bytes;
    char name[48];
} metafork_cache_file;

static inline int metafork_cache_older(const void *one, const void *other) {
    const struct timespec *const a = &((const metafork_cache_file *)one)->used, *const b = &((const metafork_cache_file *)other)->used;
    if (a->tv_sec != b->tv_sec) return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Remove the least recently used files until the rest takes no more than it may.  Others may do so too. */
static inline void metafork_cache_trim(void) {
    const char *const wish = getenv("METAFORK_CACHE_BYTES");
    const uint64_t most = wish != NULL && wish[0] >= '0' && wish[0] <= '9' ? strtoull(wish, NULL, 10) : METAFORK_CACHE_BYTES;
    char path[METAFORK_CACHE_PATH];
    metafork_cache_file *files = NULL;
    size_t count = 0, room = 0;
    uint64_t bytes = 0;
    DIR *const folder = metafork_cache_folder(path, sizeof path) ? opendir(path) : NULL;
    if (folder == NULL) return;
    for (const struct dirent *one = readdir(folder); one != NULL; one = readdir(folder)) {
        struct stat about;
        const size_t length = strlen(one->d_name);
        /* Files with names of ours: 32 digits, and what somebody is writing or did not finish. */
        if (strspn(one->d_name, "0123456789abcdef") != 32 || length >= sizeof files->name || (length != 32 && one->d_name[32] != '.')) continue;
        if (fstatat(dirfd(folder), one->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) continue;
        if (count == room) {
            room = 2 * room + 64;
            metafork_cache_file *const more = (metafork_cache_file *)realloc(files, room * sizeof *files);
            if (more == NULL) break;
            files = more;
        }
#if defined(__APPLE__)
        files[count].used = about.st_mtimespec;
#else
        files[count].used = about.st_mtim;
#endif
        files[count].bytes = (uint64_t)about.st_size;
        memcpy(files[count].name, one->d_name, length + 1);
        bytes += files[count++].bytes;
    }
    if (bytes > most) qsort(files, count, sizeof *files, metafork_cache_older);
    for (size_t i = 0; i < count && bytes > most; i++)
        if (unlinkat(dirfd(folder), files[i].name, 0) == 0) bytes -= files[i].bytes;
    free(files);
    (void)closedir(folder);
}

/* Keep something under a key, in place of what was there. */
static inline void metafork_cache_write(metafork_blob key, metafork_blob content) {
    char path[METAFORK_CACHE_PATH], temporary[METAFORK_CACHE_PATH + 8];
    metafork_cache_head head = {{0}, key.length, content.length, metafork_cache_checksum(key, content)};
    memcpy(head.magic, METAFORK_CACHE_MAGIC, sizeof head.magic);
    if (content.length == 0 || content.length > METAFORK_CACHE_MOST || !metafork_cache_path(key, true, path)) return;
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int file = mkstemp(temporary);
    if (file < 0) return;
    bool whole = metafork_cache_put(file, &head, sizeof head) && metafork_cache_put(file, key.data, key.length) &&
                 metafork_cache_put(file, content.data, content.length);
    whole = close(file) == 0 && whole;
    if (!whole || rename(temporary, path) != 0) (void)unlink(temporary);
    metafork_cache_trim();
}

#endif
