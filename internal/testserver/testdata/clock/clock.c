// Loaded before a server, this moves its wall clock by the nanoseconds that stand
// in the file CLOCK_OFFSET, whatever they are at the moment. What runs by the
// monotonic clock is left alone.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile const long long *offset; // null until it is mapped: no offset

__attribute__((constructor)) static void map_offset(void) {
	const char *path = getenv("CLOCK_OFFSET");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0) {
		return;
	}
	void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED) {
		offset = page;
	}
}

static void move(struct timespec *t, int sign) {
	if (!offset) {
		return;
	}
	long long ns = t->tv_nsec + sign * (*offset % SECOND);
	t->tv_sec += sign * (*offset / SECOND);
	if (ns >= SECOND) {
		ns -= SECOND;
		t->tv_sec++;
	} else if (ns < 0) {
		ns += SECOND;
		t->tv_sec--;
	}
	t->tv_nsec = ns;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
	int failed = syscall(SYS_clock_gettime, clock, t);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		move(t, 1);
	}
	return failed;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec t;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (out) {
		*out = t.tv_sec;
	}
	return t.tv_sec;
}

// A moment of the wall clock was computed from a moved one, and the kernel waits
// by its own. Moments of the monotonic clock are small: it starts with the machine.
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
		const struct timespec *restrict until) {
	struct timespec t = *until;
	if (t.tv_sec < SECOND) {
		return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &t);
	}
	move(&t, -1);
	return pthread_cond_clockwait(cond, mutex, CLOCK_REALTIME, &t);
}
