/* NVRTC with no compiler in it, for tests: what it is asked to compile goes to a server (nvrtc.py), which answers.
 *
 *   STANDIN_NVRTC     where the server listens
 *   STANDIN_MINOR     the version is 13.STANDIN_MINOR; 0 by default, -1: it fails to say
 *
 * Numbers are 64 bits wide, texts follow their length.  A handle that is not one, or a call in the wrong order, aborts.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { COMPILATION = 6 };

struct program {
    char *text, *header, *name, *log, *cubin;
    size_t log_size, cubin_size;
    int compiled;
};

static void must(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "violation: %s\n", what);
    abort();
}

static void say(int server, const char *text, size_t size) {
    const uint64_t length = size;
    must(write(server, &length, sizeof length) == sizeof length, "the server hears");
    for (size_t done = 0; done < size;) {
        const ssize_t sent = write(server, text + done, size - done);
        must(sent > 0, "the server hears");
        done += (size_t)sent;
    }
}

static char *hear(int server, size_t *size) {
    uint64_t length = 0;
    must(recv(server, &length, sizeof length, MSG_WAITALL) == sizeof length, "the server answers");
    char *const text = calloc(length + 1, 1);
    if (length > 0) must(recv(server, text, length, MSG_WAITALL) == (ssize_t)length, "the server answers");
    *size = length;
    return text;
}

int nvrtcVersion(int *major, int *minor) {
    const char *const wanted = getenv("STANDIN_MINOR");
    *major = 13, *minor = wanted == NULL ? 0 : atoi(wanted);
    return *minor < 0;
}

int nvrtcCreateProgram(struct program **out, const char *text, const char *name, int count, const char *const *headers, const char *const *names) {
    must(count == 1 && strcmp(names[0], "metafork/device.h") == 0, "one header");
    *out = calloc(1, sizeof **out);
    (*out)->text = strdup(text), (*out)->header = strdup(headers[0]), (*out)->name = strdup(name);
    return 0;
}

int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char all[1024] = "";
    must(program != NULL && !program->compiled++, "compiled once");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", getenv("STANDIN_NVRTC"));
    const int server = socket(AF_UNIX, SOCK_STREAM, 0);
    must(connect(server, (struct sockaddr *)&address, sizeof address) == 0, "there is a server");
    for (int i = 0; i < count; i++) strcat(strcat(all, options[i]), " ");
    say(server, program->name, strlen(program->name));
    say(server, all, strlen(all));
    say(server, program->text, strlen(program->text));
    say(server, program->header, strlen(program->header));
    program->log = hear(server, &program->log_size);
    program->cubin = hear(server, &program->cubin_size);
    close(server);
    return program->log_size > 0 ? COMPILATION : 0;
}

int nvrtcGetProgramLogSize(struct program *program, size_t *size) { return *size = program->log_size + 1, !program->compiled; }
int nvrtcGetProgramLog(struct program *program, char *log) { return memcpy(log, program->log, program->log_size + 1), !program->compiled; }
int nvrtcGetCUBINSize(struct program *program, size_t *size) { return *size = program->cubin_size, !program->compiled; }
#ifndef OLD
int nvrtcGetCUBIN(struct program *program, char *cubin) { return memcpy(cubin, program->cubin, program->cubin_size), !program->compiled; }
#endif

int nvrtcDestroyProgram(struct program **program) {
    must(*program != NULL, "destroyed once");
    free((*program)->text), free((*program)->header), free((*program)->name), free((*program)->log), free((*program)->cubin);
    free(*program);
    *program = NULL;
    return 0;
}
