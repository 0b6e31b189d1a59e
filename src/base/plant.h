/* SPDX-License-Identifier: Apache-2.0
 *
 * Planted bugs, to test the simulator (docs/SIMULATOR.md). PLANT(name) is false everywhere but in the
 * programs tests/sim_bug_N, each of which is built with one of them; scripts/plant-sim expects every
 * one to be found.
 */
#ifndef BASE_PLANT_H
#define BASE_PLANT_H

/* name: what is wrong then. Their order is their number, from 1. */
#define PLANTS(X)                                                                \
    X(LOST_REPEATED)     /* a write whose outcome is unknown is repeated */      \
    X(RESUME_EARLY)      /* the phase comes back while one of a set is open */   \
    X(BINDING_UNCHECKED) /* a call runs that is not the one that was approved */ \
    X(EXPIRY_APPROVES)   /* silence is consent */                                \
    X(RESULT_TWICE)      /* a rejected call shows its result again */            \
    X(CANCEL_FORGETS)    /* a cancelled run leaves an approved call behind */    \
    X(ROUND_TOO_MANY)    /* the rounds are one more than allowed */              \
    X(LEG_LEFT_OPEN)     /* the run waits and its leg does not end */            \
    X(SNAPSHOT_KEPT)     /* an exhausted run keeps its snapshot */               \
    X(SCHEMA_UNCHECKED)  /* an approval outlives the schema that was shown */    \
    X(CLIENT_FORGOTTEN)  /* the run goes on while a client still works */        \
    X(ASKED_TWICE)       /* a tool's question is asked again in its place */     \
    X(STARTS_EARLY)      /* a call starts again before all have their reply */   \
    X(QUESTION_LEFT)     /* a call ends and its question stays open */           \
    X(QUESTION_UNTOLD)   /* nobody learns what a lost write was asking */        \
    X(AWAY_FORGOTTEN)    /* giving up on a server starts the call again */       \
    X(REJECTED_COUNTS)   /* a step is done though its last call was rejected */  \
    X(LEAVES_EARLY)      /* a tool run takes off before its start is saved */    \
    X(WAKE_LOST)         /* the next of the queue is not woken */                \
    X(SHOWN_TWICE)       /* results of a stale step are told, and once more */   \
    X(ROWS_OLD)          /* a hot row is not brought forward */                  \
    X(ROWS_OUTLIVE)      /* a hot row outlives a rollback */

#define PLANT_ENUM(name) PLANT_##name,
enum plant { PLANT_NONE, PLANTS(PLANT_ENUM) PLANT_COUNT };
#undef PLANT_ENUM

#ifndef FERMATA_PLANT_BUG
#define FERMATA_PLANT_BUG 0
#endif
#define PLANT(name) (FERMATA_PLANT_BUG == PLANT_##name)

#endif
