// A network cable with a length: carries IP packets between two network namespaces, each after a
// delay, and at most so many bits in a second each way.
//
//   wire DEVICE NAMESPACE_A NAMESPACE_B DELAY_US RATE_MBIT
//
// makes a TUN device of this name in both namespaces (those of ip-netns), prints "up" when they are
// there, and carries packets until its standard input ends or a signal ends it; the devices go with
// it. DELAY_US is one way, in microseconds; RATE_MBIT may be 0, no limit. Whoever started it gives
// the devices their addresses. It stands where netem would, in kernels that have none.
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// The largest packet: jumbo frames, so that a core carries a gigabit.
#define LARGEST 9216
// As much as is under way for a third of a second at 1 Gbit/s in packets of 9,000 bytes. Where the
// slots are taken, packets wait in the device, and the sender notices.
#define SLOTS 4096
#define NS_PER_SECOND 1000000000u

// Packets that come in at one end of the cable go out at the other.
struct direction {
    int from, to;
    struct wire_queue queue;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

// Makes a TUN device in a namespace; this process is back in its own afterwards.
static int device_in(const char *namespace, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (own < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0)
        fail(path);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0)
        fail("/dev/net/tun");
    if (setns(own, CLONE_NEWNET) != 0)
        fail("the own network namespace");
    close(own);
    close(there);
    return device;
}

// Reads all packets that wait at one end, as long as there is room for them.
static void read_all(struct direction *way)
{
    char *room;
    while ((room = wire_queue_room(&way->queue)) != NULL) {
        ssize_t length = read(way->from, room, way->queue.largest);
        if (length > 0)
            wire_queue_send(&way->queue, (size_t)length, now());
        else if (length < 0 && errno == EINTR)
            continue;
        else if (length < 0 && errno != EAGAIN)
            fail("reading from the device");
        else
            return;
    }
}

// Writes what has arrived. A packet that the device does not take is lost, as on a real cable.
static void write_arrived(struct direction *way)
{
    const struct wire_packet *packet;
    while ((packet = wire_queue_arrived(&way->queue, now())) != NULL) {
        if (write(way->to, packet->data, packet->length) < 0 && errno == EINTR)
            continue;
        wire_queue_take(&way->queue);
    }
}

// Waits until a packet comes or arrives. Returns false once standard input has ended.
static bool wait_for_packets(const struct direction ways[2])
{
    uint64_t next = WIRE_NEVER;
    struct pollfd waits[3] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    for (int i = 0; i < 2; i++) {
        const struct wire_queue *queue = &ways[i].queue;
        bool has_room = queue->count < queue->slots;
        waits[i + 1] = (struct pollfd){.fd = has_room ? ways[i].from : -1, .events = POLLIN};
        if (wire_queue_next(queue) < next)
            next = wire_queue_next(queue);
    }
    uint64_t time = now();
    uint64_t rest = next > time ? next - time : 0;
    struct timespec limit = {.tv_sec = (time_t)(rest / NS_PER_SECOND),
                             .tv_nsec = (long)(rest % NS_PER_SECOND)};
    if (ppoll(waits, 3, next == WIRE_NEVER ? NULL : &limit, NULL) < 0 && errno != EINTR)
        fail("waiting for packets");
    char nothing;
    return waits[0].revents == 0 || read(STDIN_FILENO, &nothing, 1) > 0;
}

static uint64_t number(const char *text, const char *what)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "wire: %s is '%s': give a whole number\n", what, text);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: wire DEVICE NAMESPACE_A NAMESPACE_B DELAY_US RATE_MBIT\n");
        return 2;
    }
    struct wire_speed speed = {.delay_ns = number(argv[4], "DELAY_US") * 1000,
                               .bits_per_us = number(argv[5], "RATE_MBIT")};
    int a = device_in(argv[2], argv[1]);
    int b = device_in(argv[3], argv[1]);
    struct direction ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    for (int i = 0; i < 2; i++) {
        if (!wire_queue_init(&ways[i].queue, speed, SLOTS, LARGEST))
            fail("memory for packets");
    }
    // A delay of 100 us is not to become one of 150.
    prctl(PR_SET_TIMERSLACK, 1UL);
    puts("up");
    fflush(stdout);
    do {
        for (int i = 0; i < 2; i++) {
            read_all(&ways[i]);
            write_arrived(&ways[i]);
        }
    } while (wait_for_packets(ways));
    return EXIT_SUCCESS;
}
